"""The language server as a client has it, and a client that types: it has one document and one cursor."""

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
CAPABILITIES = types.ClientCapabilities(
    text_document=types.TextDocumentClientCapabilities(inline_completion=types.InlineCompletionClientCapabilities()),
    workspace=types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
    ),
)


@asynccontextmanager
async def language_server(
    options: Mapping[str, object], *arguments: str, wait: bool = True
) -> AsyncIterator[LanguageClient]:
    """Starts ``lacuna-lsp`` with more ``arguments``, and waits until its model is loaded.

    Raises LacunaError if loading fails.
    """
    client = LanguageClient("lacuna-bench", "1")
    client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(_agree)
    client.feature(types.WINDOW_SHOW_MESSAGE)(_ignore)
    await client.start_io(sys.executable, *COMMAND, *arguments)
    params = types.InitializeParams(capabilities=CAPABILITIES, process_id=os.getpid(), initialization_options=options)
    await client.initialize_async(params)
    client.initialized(types.InitializedParams())
    try:
        while wait and (status := await _status(client))["state"] != "ready":
            if status["state"] == "failed":
                raise LacunaError(f"no engine: {status['message']}")
            await asyncio.sleep(LOADING_POLL_S)
        yield client
    finally:
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()  # type: ignore[no-untyped-call]


async def _status(client: LanguageClient) -> dict[str, Any]:
    answer: Any = await client.workspace_execute_command_async(types.ExecuteCommandParams("lacuna.status"))
    return dict(answer)


def _agree(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
    return next(iter(params.actions or ()), None)


def _ignore(params: object) -> None:
    """Takes a message that is for people."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The first suggestion ("" without one), and the time of the answer in milliseconds."""

    text: str
    ms: float


class Typist:
    """Opens documents, and asks for a suggestion at a cursor with text before and after it."""

    def __init__(self, client: LanguageClient) -> None:
        self._client = client
        self._documents = 0

    async def suggestion(self, before: str, after: str, extension: str, language: str) -> Answer:
        """Opens a new document, and requests inline completion in it as a client does after a keystroke."""
        self._documents += 1
        uri = URI.format(f"{self._documents}{extension}")
        item = types.TextDocumentItem(uri, language, 1, before + after)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        *lines, head = before.split("\n")
        place = types.Position(len(lines), len(head.encode("utf-16-le")) // 2)
        context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
        params = types.InlineCompletionParams(context, types.TextDocumentIdentifier(uri), place)
        began = time.perf_counter()
        answer = await self._client.text_document_inline_completion_async(params)
        ms = (time.perf_counter() - began) * 1e3
        items = answer.items if isinstance(answer, types.InlineCompletionList) else answer or ()
        return Answer(str(items[0].insert_text) if items else "", ms)
