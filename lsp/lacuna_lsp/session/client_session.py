"""One client's session: its documents, settings, engine and suggestions."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from lsprotocol import types

from lacuna_lsp.client import settings as settings_of_client
from lacuna_lsp.client.errors import StaleError
from lacuna_lsp.client.news import News
from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.documents.notebooks import Notebooks
from lacuna_lsp.documents.positions import Encoding, to_utf8
from lacuna_lsp.engine.connection import ServiceConnection
from lacuna_lsp.next_edit.next_edits import NextEdits
from lacuna_lsp.suggest.inline import Inline, Request
from lacuna_lsp.suggest.items import Origin
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Diagnostic, FillGaps, InfillResult, Region, Snippet, Task
from lacuna_server.client.client import Address
from lacuna_server.files import BOM
from lacuna_server.wire import layers
from lacuna_server.wire.layers import SettingsLayer
from lacuna_server.wire.protocol import Edit, FeedbackKind
from lacuna_server.wire.settings import Settings

log = logging.getLogger(__name__)

REMEMBERED = 256  # lines that were shown to the user last


class ClientSession:
    """The state of one client, from ``initialize`` to the end of its connection.

    ``tell`` is called at every change of the engine's state; ``say`` shows the user one line.
    """

    def __init__(
        self, locate: Callable[..., Awaitable[Address]], tell: Callable[[News], None], say: Callable[[str], None]
    ) -> None:
        self.encoding: Encoding = "utf-16"
        self.settings = Settings()
        self.documents: dict[str, ClientDocument] = {}
        self.notebooks = Notebooks()
        self.engine = ServiceConnection(
            locate, lambda: list(self.documents.values()), self._hear, self.say_once, lambda: self.settings
        )
        self._files: list[SettingsLayer] = []
        self._tell = tell
        self._say = say
        self._lines_shown: deque[str] = deque(maxlen=REMEMBERED)
        self.next_edits = NextEdits(self.engine, lambda: list(self.documents.values()), lambda: self.settings)
        self.inline = Inline(self.engine, lambda: self.settings, self._above, self.say_once)
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts to connect to the engine."""
        self._running = asyncio.create_task(self.engine.run())

    async def close(self) -> None:
        """Disconnects from the engine."""
        self.inline.left_for("")
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    def read_files(self, folders: Sequence[str]) -> None:
        """Reads the settings of the user's file, of the project in the first folder, and of the environment."""
        self._files = settings_of_client.of_files(folders)

    def configure(self, values: object) -> None:
        """Applies a client's settings over those of the files; shows each problem with them once."""
        found = [*self._files, settings_of_client.parse(values)]
        self.settings = layers.settings(found)
        for problem in layers.problems(found):
            self.say_once(problem)
        self.engine.check()

    def _hear(self, news: News) -> None:
        self._tell(news)
        if news.state == "ready":
            self.inline.ready()

    def say_once(self, line: str) -> None:
        """Shows the user a line, unless it is one of those shown last."""
        if line not in self._lines_shown:
            self._lines_shown.append(line)
            self._say(line)

    # --- documents

    def document(self, uri: str, version: int | None = None) -> ClientDocument:
        """Returns an open document; raises RequestError if it is not open, StaleError if its version differs."""
        document = self.documents.get(uri)
        if document is None:
            raise RequestError(f"{uri} is not open")
        if version is not None and version != document.version:
            raise StaleError(f"{uri} is open in version {document.version}, not {version}")
        return document

    def open(self, item: types.TextDocumentItem) -> None:
        """Opens a document; raises RequestError for a uri that is not valid Unicode."""
        if to_utf8(item.uri).decode() != item.uri:
            raise RequestError(f"{item.uri!r} is no uri")
        document = ClientDocument(item.uri, item.text, item.version, item.language_id, self.encoding)
        self.documents[item.uri] = document
        self.engine.open(document)
        self.inline.opened(document)

    def change(
        self, identifier: types.VersionedTextDocumentIdentifier, changes: Sequence[types.TextDocumentContentChangeEvent]
    ) -> None:
        """Applies changes to a document; cancels a running suggestion for its earlier text."""
        document = self.document(identifier.uri)
        before = document.snapshot()
        edits = document.apply(changes, identifier.version)
        self.next_edits.edited(before, document, edits)
        self.engine.change(document, edits)
        self.inline.edited(document, edits)

    def close_document(self, uri: str) -> None:
        """Closes a document."""
        document = self.document(uri)
        self.inline.closed(uri)
        self.next_edits.forget(uri)
        del self.documents[uri]
        self.engine.close(document)

    def change_notebook(self, uri: str, change: types.NotebookDocumentChangeEvent) -> None:
        """Applies a change of a notebook: cells inserted, deleted or edited."""
        if (cells := change.cells) is None:
            return
        if (structure := cells.structure) is not None:
            self.notebooks.change(uri, structure.array)
            for opened in structure.did_open or ():
                self.open(opened)
            for closed in structure.did_close or ():
                self.close_document(closed.uri)
        for typed in cells.text_content or ():
            self.change(typed.document, typed.changes)

    def focus(self, uri: str, position: types.Position | None) -> None:
        """Handles a move of the user to a document, at ``position`` if known; cancels suggestions for others."""
        self.inline.left_for(uri)
        document = self.documents.get(uri)
        if document is not None and position is not None:
            offset, _ = document.bounds(types.Range(position, position))
            self.inline.rests(document, offset)

    def _above(self, document: ClientDocument) -> tuple[Snippet, ...]:
        """Returns the texts that precede a document: the cells above it in a notebook."""
        return self.notebooks.above(document.uri, self.documents.get)

    def is_stale(self, document: ClientDocument, version: int | None) -> bool:
        """Whether a document is closed or in another version; for ``version`` None, whether its file differs."""
        if version is not None:
            return self.documents.get(document.uri) is not document or document.version != version
        try:
            return Path(document.path).read_bytes().removeprefix(BOM.encode()) != document.text
        except OSError:
            return True

    # --- requests

    async def infill(
        self,
        document: ClientDocument,
        regions: Sequence[Region],
        task: Task = FillGaps(),  # noqa: B008 (frozen)
        *,
        diagnostics: Sequence[Diagnostic] = (),
    ) -> InfillResult:
        """Fills regions on the user's command; raises ServiceError with the reason."""
        self.inline.hide()
        return await self.engine.infill(
            document,
            regions,
            task=task,
            snippets=self._above(document),
            diagnostics=diagnostics,
        )

    def request(
        self,
        document: ClientDocument,
        position: types.Position,
        *,
        invoked: bool,
        selected: types.SelectedCompletionInfo | None = None,
    ) -> Request:
        """Returns the request for suggestions for a cursor."""
        offset, _ = document.bounds(types.Range(position, position))
        return Request(document, offset, invoked, _edit(document, selected))

    def feedback(self, kind: FeedbackKind, origin: Origin | None, accepted_bytes: int = 0) -> None:
        """Reports the outcome of a suggestion to the engine; a rejected text is not suggested again."""
        if origin is None:
            return
        self.engine.feedback(origin.request, kind, candidate=origin.candidate, accepted_bytes=accepted_bytes)
        if kind == "rejected":
            self.inline.dismissed(origin.request, origin.candidate)


def _edit(document: ClientDocument, selected: types.SelectedCompletionInfo | None) -> Edit | None:
    if selected is None:
        return None
    start, end = document.bounds(selected.range)
    return Edit(start, end, to_utf8(selected.text).decode())
