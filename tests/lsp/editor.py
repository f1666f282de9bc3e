"""An editor: a pytest-lsp client with one document and a cursor, connected to a real ``lacuna-lsp``."""

import asyncio
import functools
import logging
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.io_ import run_async
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

log = logging.getLogger(__name__)
# Of each encoding of positions: the codec, and the bytes of a code unit.
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


async def until(what: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until ``what`` returns a true value, while the client continues to handle messages."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        await asyncio.sleep(0.02)


class Editor:
    """A client with one document and one cursor. ``¦`` marks the cursor in a text that it opens.

    For every edit and every question from the server, the client first calls ``while_previewed``. If ``refusing`` is a
    string, it then refuses the edit with this reason, or without a reason if the string is empty. Otherwise it adds the
    edit to ``applied``. ``answers`` are the titles that it chooses in message boxes. ``statuses`` are the status
    notifications of the engine, in their order of arrival.
    """

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.applied: list[types.ApplyWorkspaceEditParams] = []
        self.refusing: str | None = None
        self.while_previewed: Callable[[], None] = lambda: None
        self.answers: list[str] = []
        self.asked: list[types.ShowMessageRequestParams] = []
        self.statuses: list[Any] = []
        client.feature(types.WORKSPACE_APPLY_EDIT)(functools.partial(self._apply))
        client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(functools.partial(self._answer))
        client.feature("experimental/serverStatus")(functools.partial(self.statuses.append))
        self.encoding = "utf-16"
        self.uri, self.version = "", 0
        self.before, self.after = "", ""

    async def initialize(
        self,
        options: object = None,
        *,
        encoding: str = "utf-16",
        folder: Path | None = None,
        without: str = "",
        experimental: Mapping[str, bool] | None = None,
        ready: bool = True,
    ) -> types.InitializeResult:
        """Initialize as VS Code does, ``without`` one of its capabilities."""
        capabilities = client_capabilities("visual-studio-code")
        assert capabilities.text_document is not None
        assert capabilities.general is not None
        capabilities.text_document.inline_completion = types.InlineCompletionClientCapabilities()
        capabilities.general.position_encodings = [types.PositionEncodingKind(encoding)]
        capabilities.experimental = {"serverStatusNotification": True} if experimental is None else experimental
        synchronization = types.NotebookDocumentSyncClientCapabilities()
        capabilities.notebook_document = types.NotebookDocumentClientCapabilities(synchronization)
        if without:
            *around, name = without.split(".")
            setattr(functools.reduce(getattr, around, capabilities), name, None)
        self.encoding = encoding
        result = await self.client.initialize_session(
            types.InitializeParams(
                capabilities=capabilities,
                root_uri=folder.as_uri() if folder else None,
                initialization_options=options,
            )
        )
        if ready:
            await self.ready()
        return result

    async def begin(self, text: str = "value = ¦\n", *, ready: bool = True, **options: object) -> None:
        """Initialize without a pause before requests, and open a document."""
        await self.initialize({"debounce": False} | options, ready=ready)
        self.open(text)

    async def ready(self) -> None:
        """Wait until the engine is ready."""
        for _ in range(3000):
            status = await self.command("lacuna.status")
            if status["state"] == "ready":
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"the engine did not become ready: {status}")

    async def command(self, name: str, *arguments: object) -> Any:
        params = types.ExecuteCommandParams(name, arguments=list(arguments))
        return await self.client.workspace_execute_command_async(params)

    async def do(self, name: str, **argument: object) -> Any:
        """Run one of Lacuna's commands about the document."""
        return await self.command(f"lacuna.{name}", {"textDocument": {"uri": self.uri}} | argument)

    def configure(self, settings: object) -> None:
        """Send settings."""
        self.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))

    @property
    def progress(self) -> list[list[Any]]:
        """What was told of each piece of work of which progress is shown."""
        return [seen for seen in self.client.progress_reports.values() if seen]

    @property
    def text(self) -> str:
        return self.before + self.after

    @property
    def position(self) -> types.Position:
        """Where the cursor is, in this client's units."""
        *lines, head = re.split("\r\n|\r|\n", self.before)
        codec, width = CODECS[self.encoding]
        return types.Position(len(lines), len(head.encode(codec)) // width)

    def open(self, text: str, name: str = "code.py", language: str = "python", uri: str = "") -> None:
        self.before, _, self.after = text.partition("¦")
        self.uri, self.version = uri or f"file:///work/{name}", 1
        item = types.TextDocumentItem(self.uri, language, self.version, self.text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def type(self, text: str, *, closing: str = "") -> None:
        """Insert text at the cursor. ``closing`` is what the editor adds after it by itself, such as a bracket."""
        self._change(types.Range(self.position, self.position), text + closing)
        self.before, self.after = self.before + text, closing + self.after

    def delete(self, count: int) -> None:
        """Press backspace."""
        end = self.position
        self.before = self.before[:-count]
        self._change(types.Range(self.position, end), "")

    def _change(self, span: types.Range, text: str) -> None:
        self.version += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.version, self.uri),
                [types.TextDocumentContentChangePartial(span, text)],
            )
        )

    def _apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.while_previewed()
        if self.refusing is not None:
            return types.ApplyWorkspaceEditResult(applied=False, failure_reason=self.refusing or None)
        self.applied.append(params)
        return types.ApplyWorkspaceEditResult(applied=True)

    def _answer(self, params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        self.while_previewed()
        self.asked.append(params)
        return next((a for a in params.actions or () if any(a.title.startswith(t) for t in self.answers)), None)

    @property
    def messages(self) -> list[str]:
        """The messages that the server has shown."""
        return [message.message for message in self.client.messages]

    @property
    def annotations(self) -> list[types.ChangeAnnotation]:
        """Those of the only edit that was applied."""
        (applied,) = self.applied
        return list((applied.edit.change_annotations or {}).values())

    def edited(self) -> str:
        """The text after the last applied edit, which must be for the current version of this document."""
        changes = self.applied[-1].edit.document_changes
        assert changes is not None
        (change,) = changes
        assert isinstance(change, types.TextDocumentEdit)
        assert (change.text_document.uri, change.text_document.version) == (self.uri, self.version)
        return edited(self.text, change.edits, self.encoding)

    async def cancelled(self, method: str, params: object, begun: Callable[[], object]) -> int:
        """Send a request, cancel it once ``begun`` is true, and return the code of the error that answers it."""
        answer = self.client.protocol.send_request(method, params, msg_id="mine")
        await until(begun)
        self.client.cancel_request(types.CancelParams("mine"))
        with pytest.raises(JsonRpcException) as refused:
            await asyncio.wrap_future(answer)
        return refused.value.code

    def here(
        self, *, invoked: bool = False, selected: types.SelectedCompletionInfo | None = None
    ) -> types.InlineCompletionParams:
        """What asks for inline completions at the cursor."""
        kind = types.InlineCompletionTriggerKind.Invoked if invoked else types.InlineCompletionTriggerKind.Automatic
        context = types.InlineCompletionContext(kind, selected)
        return types.InlineCompletionParams(context, types.TextDocumentIdentifier(self.uri), self.position)

    async def items(
        self, *, invoked: bool = False, selected: types.SelectedCompletionInfo | None = None
    ) -> list[types.InlineCompletionItem]:
        """Inline completions at the cursor."""
        params = self.here(invoked=invoked, selected=selected)
        answer = await self.client.text_document_inline_completion_async(params)
        assert isinstance(answer, types.InlineCompletionList)
        return list(answer.items)

    async def suggest(self, *, invoked: bool = False) -> list[str]:
        """The texts of the inline completions at the cursor."""
        return [str(item.insert_text) for item in await self.items(invoked=invoked)]


def edited(text: str, edits: Any, encoding: str) -> str:
    """Return a text after some edits, which must not overlap."""
    codec, width = CODECS[encoding]
    lines = re.split("(?<=\n)|(?<=\r)(?!\n)", text)

    def offset(position: types.Position) -> int:
        head = lines[position.line].encode(codec)[: position.character * width].decode(codec)
        return sum(map(len, lines[: position.line])) + len(head)

    for edit in sorted(edits, key=lambda edit: offset(edit.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


@asynccontextmanager
async def connected(socket: Path) -> AsyncIterator[Editor]:
    """An editor connected by a Unix socket."""
    client = make_test_lsp_client()
    reader, writer = await asyncio.open_unix_connection(socket)
    client.protocol.set_writer(writer)
    reading = run_async(client._stop_event, reader, client.protocol, log, client.report_server_error)
    client._async_tasks.append(asyncio.create_task(reading))
    try:
        yield Editor(client)
        await client.shutdown_session()
    finally:
        writer.close()
        await client.stop()
        await writer.wait_closed()


@asynccontextmanager
async def launched(
    environment: Mapping[str, str], *arguments: str, python: Path = Path(sys.executable)
) -> AsyncIterator[Editor]:
    """An editor with a ``lacuna-lsp`` of its own, on stdio."""
    client = make_test_lsp_client()
    await client.start_io(str(python), "-I", "-m", "lacuna_lsp", *arguments, env=environment)
    assert client._server is not None
    try:
        yield Editor(client)
        await client.shutdown_session()
    finally:
        if client._server.returncode is None:
            client._server.terminate()
        await client.stop()
