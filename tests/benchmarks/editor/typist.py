"""An LSP client that types: it has one document and one cursor, and times every answer."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from lacuna_model.core.errors import LacunaError

COMMAND = ("-I", "-m", "lacuna_lsp")
URI = "file:///bench/code{}"
LOADING_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Answer:
    """The first suggestion ("" without one), and the time of the answer in milliseconds."""

    text: str
    ms: float


class Typist:
    """Types into a document, at a cursor with text before and after it."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.before, self.after = "", ""
        self._uri, self._version, self._documents = "", 0, 0

    def open(self, before: str, after: str, extension: str = ".py", language: str = "python") -> None:
        """Opens a new document."""
        self.before, self.after = before, after
        self._documents += 1
        self._uri, self._version = URI.format(f"{self._documents}{extension}"), 1
        item = types.TextDocumentItem(self._uri, language, 1, before + after)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def type(self, text: str) -> None:
        """Inserts text at the cursor."""
        self._version += 1
        change = types.TextDocumentContentChangePartial(types.Range(self._position(), self._position()), text)
        identifier = types.VersionedTextDocumentIdentifier(self._version, self._uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
        self.before += text

    def jump(self, offset: int) -> None:
        """Moves the cursor to a character offset of the text."""
        text = self.before + self.after
        self.before, self.after = text[:offset], text[offset:]

    def focus(self) -> None:
        """Tells the server where the cursor is."""
        place = self._position()
        position = {"line": place.line, "character": place.character}
        self.client.protocol.notify("textDocument/didFocus", {"textDocument": {"uri": self._uri}, "position": position})

    async def suggest(self) -> Answer:
        """Requests inline completion as a client does after a keystroke, and returns the answer."""
        context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
        params = types.InlineCompletionParams(context, types.TextDocumentIdentifier(self._uri), self._position())
        began = time.perf_counter()
        answer = await self.client.text_document_inline_completion_async(params)
        ms = (time.perf_counter() - began) * 1e3
        items = answer.items if isinstance(answer, types.InlineCompletionList) else answer or ()
        return Answer(str(items[0].insert_text) if items else "", ms)

    async def status(self) -> dict[str, Any]:
        """Returns the status that the language server reports."""
        answer: Any = await self.client.workspace_execute_command_async(types.ExecuteCommandParams("lacuna.status"))
        return dict(answer)

    async def ready(self) -> None:
        """Waits until the model is loaded; raises LacunaError if loading fails."""
        while (status := await self.status())["state"] != "ready":
            if status["state"] == "failed":
                raise LacunaError(f"no engine: {status['message']}")
            await asyncio.sleep(LOADING_POLL_S)

    async def counts(self) -> dict[str, int]:
        """Returns how many suggestions were wanted, served from the cache and requested from the engine so far."""
        return dict((await self.status())["suggestions"])

    def _position(self) -> types.Position:
        *lines, head = self.before.split("\n")
        return types.Position(len(lines), len(head.encode("utf-16-le")) // 2)


@asynccontextmanager
async def typist(options: Mapping[str, object]) -> AsyncIterator[tuple[Typist, float]]:
    """Starts ``lacuna-lsp``; yields a typist for it, and the milliseconds until it was ready for requests."""
    client = LanguageClient("lacuna-bench", "1")
    capabilities = types.ClientCapabilities(
        text_document=types.TextDocumentClientCapabilities(inline_completion=types.InlineCompletionClientCapabilities())
    )
    began = time.perf_counter()
    await client.start_io(sys.executable, *COMMAND)
    params = types.InitializeParams(capabilities=capabilities, process_id=os.getpid(), initialization_options=options)
    await client.initialize_async(params)
    ready_ms = (time.perf_counter() - began) * 1e3
    client.initialized(types.InitializedParams())
    try:
        yield Typist(client), ready_ms
    finally:
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()  # type: ignore[no-untyped-call]
