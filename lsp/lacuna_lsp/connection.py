"""The engine as one client of the language server has it: its state, the documents that it reads, and its fills."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lacuna_lsp.client.client_session import ClientSession
from lacuna_lsp.document import ClientDocument, narrowed
from lacuna_model.core.context import WindowOptions
from lacuna_model.core.params import (
    ChooseSnippets,
    DecodeOptions,
    Diagnostic,
    FillGaps,
    InfillRequest,
    InfillResult,
    Region,
    Snapshot,
    Snippet,
    Task,
)
from lacuna_model.hub import models
from lacuna_model.snippets.format import PieceCounter
from lacuna_model.text.lines import directions
from lacuna_server.client.client import Address, Client
from lacuna_server.client.starting import TOKEN_VARIABLE, arguments
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import Edit, Infill, Open, Result, ServiceError, Status, Step

if TYPE_CHECKING:
    from lacuna_model.snippets.chooser import SnippetChooser

log = logging.getLogger(__name__)

POLL_S, LONGEST_POLL_S = 0.05, 30.0
# The service closes larger documents, so every keystroke would send the whole text again.
MAX_DOCUMENT_BYTES = ServerConfig().max_document_bytes
BUDGET = WindowOptions().snippets  # tokens, of parts of other files

Locate = Callable[..., Awaitable[Address]]
State = Literal["starting", "loading", "ready", "lost", "unreachable", "failed"]
# What the user can do about a state that is an error.
_ADVICE: dict[State, str] = {
    "lost": "Lacuna connects again by itself; `lacuna status` in a terminal says whether the engine runs",
    "unreachable": "start the engine with `lacuna serve`, or correct the address after --engine",
    "failed": "`lacuna doctor` on the engine's machine says how to repair it; then open a file again",
}


class News(msgspec.Struct, frozen=True):
    """The engine's state: ``fraction`` (0..1) of the model that is loaded, and ``message`` for the user."""

    state: State
    fraction: float = 0.0
    message: str = ""

    def status(self) -> dict[str, Any]:
        """Returns the parameters of ``experimental/serverStatus``: rust-analyzer's fields and Lacuna's own."""
        health = "error" if self.state in _ADVICE else "ok"
        rests = self.state in ("ready", "failed")
        advice = _ADVICE.get(self.state, "")
        return {"health": health, "quiescent": rests, "advice": advice, **msgspec.to_builtins(self)}


class ServiceConnection:
    """One session with the service, from the client's first message to its last.

    ``locate`` returns the service's address at every attempt; it takes the arguments with which to start a service.
    ``tell`` is called at every change of state.
    """

    def __init__(self, locate: Locate, session: ClientSession, tell: Callable[[News], None]) -> None:
        self._locate = locate
        self._session = session
        self._tell = tell
        self._client = Client(self._located, name="lacuna-lsp", reconnects=True, tell=self._broken)
        self.feedback = self._client.feedback
        self._awake = asyncio.Event()
        self._changed = asyncio.Event()
        self._workspaces = ClientWorkspaces()
        self.follows_edits = False  # the model was made for next edits
        self.news = News("starting")

    async def run(self) -> None:
        """Keeps a session until cancelled."""
        try:
            async with self._client:
                self._client.start()
                await self._watch()
        finally:
            self._workspaces.close()

    async def _located(self) -> Address:
        address = await self._locate(*arguments(self._session.settings))
        if address.unencrypted:
            self._session.say_once(
                f"the token and every text go to {address.url} unencrypted, so that others on the way can read them: "
                "use https:// or an ssh tunnel"
            )
        return address

    def _broken(self, why: ServiceError | OSError, lately: bool) -> None:
        """Handles a connection that broke or could not be made; the client tries again."""
        if isinstance(why, ServiceError):
            todo = f": set ${TOKEN_VARIABLE} for lacuna-lsp" if why.code == "unauthorized" else ""
            self._now(News("failed", message=f"{why}{todo}"))
        elif lately:
            self._now(News("lost", message="the connection to the engine broke"))
            self._awake.set()  # asks for the state again
        else:
            self._now(News("unreachable", message=str(why)))

    async def _watch(self) -> None:
        """Follows the service's state: by polling while the model loads, later when woken."""
        while True:
            self._awake.clear()  # an event from here on may be newer than the answer
            try:
                status = await self._client.status()
            except (ServiceError, OSError):  # the client has told why, and tries again
                continue
            self.follows_edits = status.follows_edits
            state: State = "loading" if status.state == "restarting" else status.state
            self._now(News(state, status.fraction, status.detail or status.model))
            for document in self._session.documents.values():
                self._read_folder(document)
            wanted = self._session.settings.model
            if wanted and models.absolute(wanted) != models.absolute(status.model):
                service = f"the running service has the model {status.model}, not {wanted}"
                self._session.say_once(f"{service}; lacuna stop ends it")
            pause = {"loading": POLL_S, "ready": None}.get(self.news.state, LONGEST_POLL_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._awake.wait()

    def check(self) -> None:
        """Looks at the service's state again, because the settings or the folders have changed.

        Documents whose workspace is another one now are opened again.
        """
        for document in self._session.documents.values():
            sent = self._client.documents.get(document.uri)
            if sent is not None and sent.opened.workspace != self._session.workspace(document.path):
                self.open(document)
        self._awake.set()

    def _now(self, news: News) -> None:
        if news != self.news:
            if news.state in ("lost", "unreachable", "failed"):
                log.warning("no engine: %s", news.message)
            self.news = news
            self._changed.set()
            self._tell(news)

    # --- documents

    def open(self, document: ClientDocument) -> None:
        """Sends a document as it is now, unless it is larger than the service accepts."""
        if document.size > MAX_DOCUMENT_BYTES:
            return
        self._client.open(self._opened(document))
        self._read_folder(document)
        if self.news.state == "failed":  # then the service loads the model again
            self._awake.set()

    def _read_folder(self, document: ClientDocument) -> None:
        """Reads the folder of a document here, where the engine does not."""
        if not self._client.reads_workspaces and (folder := self._session.workspace(document.path)):
            self._workspaces.read(folder)

    def _opened(self, document: ClientDocument) -> Open:
        workspace = self._session.workspace(document.path)
        return Open(document.uri, document.text.decode(), 0, document.path, document.language, workspace)

    def change(self, document: ClientDocument, edits: Sequence[Edit]) -> None:
        """Sends the edits of a document, each to the result of the previous one."""
        if document.uri not in self._client.documents:
            self.open(document)
        elif document.size > MAX_DOCUMENT_BYTES:
            self.close(document)
        else:
            self._client.change(document.uri, edits)

    def close(self, document: ClientDocument) -> None:
        """Reports that a document is closed."""
        self._client.close(document.uri)

    # --- requests

    def infill(
        self,
        document: ClientDocument,
        regions: Sequence[Region],
        *,
        id: str = "",
        task: Task = FillGaps(),  # noqa: B008 (frozen)
        options: DecodeOptions = DecodeOptions(),  # noqa: B008 (frozen)
        snippets: Sequence[Snippet] = (),
        diagnostics: Sequence[Diagnostic] = (),
        signatures: Sequence[Snippet] = (),
        typed: Edit | None = None,
        told: Callable[[Snapshot], None] | None = None,
    ) -> Coroutine[Any, Any, InfillResult]:
        """Fills regions of a document as it is now; raises ServiceError, with code ``loading`` if no engine is ready.

        ``typed`` is an edit of the document for this request alone; ``regions`` refer to the edited text. Without
        ``snippets``, the engine chooses them from the client's folders; if it does not read these, this server does.
        ``told`` is called with a snapshot after each step. It ends no other fill of the document.
        """
        self._check_ready()
        if (sent := self._client.documents.get(document.uri)) is None:
            raise ServiceError("too_large", f"files of more than {MAX_DOCUMENT_BYTES >> 20} MiB are not filled")
        message = Infill(
            id,
            document.uri,
            sent.version,
            tuple(regions),
            () if typed is None else (typed,),
            task,
            options,
            tuple(snippets),
            tuple(diagnostics),
            tuple(signatures),
            supersede=False,
            snapshots=told is not None,
        )
        now = document.snapshot()

        async def filled() -> InfillResult:
            asked, results = message, list[Result]()
            folder = "" if snippets or self._client.reads_workspaces else self._session.workspace(now.path)
            if folder:  # the engine does not read it
                chosen = await self._workspaces.choose(folder, now, regions[0].start, diagnostics, signatures)
                asked = msgspec.structs.replace(self._as_of(now, message), snippets=chosen, signatures=())
            try:
                async with aclosing(self._client.infill(asked)) as answers:
                    async for answer in answers:
                        if isinstance(answer, Result):
                            results.append(answer)
                        elif isinstance(answer, Step) and told and _is_legible(answer.snapshot.written, now):
                            told(answer.snapshot)
            except ServiceError as error:
                if error.code in ("worker_crashed", "loading", "model_failed"):
                    self._awake.set()
                raise
            except OSError as error:
                raise ServiceError("loading", f"no engine: {error}") from None
            return _legible(results[0].result, now)

        return filled()

    async def snippets(self, document: ClientDocument, at: int) -> tuple[Sequence[Snippet], str]:
        """Returns the parts of other files that a fill at an offset (bytes) would read, and why there are none."""
        folder = "" if self._client.reads_workspaces else self._session.workspace(document.path)
        if folder:
            return await self._workspaces.choose(folder, document.snapshot(), at, (), ()), ""
        result = await self.infill(document, [Region(at, at)], task=ChooseSnippets(BUDGET))
        return result.snippets, result.message

    def _as_of(self, asked: ClientDocument, message: Infill) -> Infill:
        """Returns a request for the text of a document as it was asked about, also after edits since then.

        Raises ServiceError if the document was closed.
        """
        if (sent := self._client.documents.get(asked.uri)) is None:
            raise ServiceError("cancelled", "the document was closed")
        if sent.version == message.version:
            return message
        back = narrowed(Edit(0, len(sent.text), asked.text.decode()), bytes(sent.text))
        return msgspec.structs.replace(message, version=sent.version, edits=(back, *message.edits))

    async def answer(self, request: InfillRequest, aside: str) -> InfillResult:
        """Answers a request for a text that is no open document, such as a file to refactor. Raises ServiceError.

        Requests of different purposes, each with a name of its own ``aside``, may be for one file at the same time.
        """
        await self.becomes_ready()
        document = ClientDocument(f"lacuna:{aside}:{request.path}", request.text, 0, request.language, "utf-8")
        document.path = request.path
        self._client.open(self._opened(document))
        try:
            return await self.infill(document, request.regions, task=request.task, options=request.options)
        finally:
            self._client.close(document.uri)

    async def becomes_ready(self, waits: Callable[[News], None] = lambda news: None) -> None:
        """Waits while the engine starts or loads its model; ``waits`` is called with every state until then.

        Raises ServiceError, with code ``loading``, if the engine does not get ready.
        """
        while self.news.state in ("starting", "loading"):
            waits(self.news)
            self._changed.clear()
            await self._changed.wait()
        self._check_ready()

    def _check_ready(self) -> None:
        if self.news.state != "ready":
            raise ServiceError("loading", f"no engine yet: {self.news.message or self.news.state}")

    async def status(self) -> Status | None:
        """Returns the service's status, or None without a connection."""
        if self._client.is_connected:
            with suppress(ServiceError, OSError):  # it breaks just now
                return await self._client.status()
        return None


def _is_legible(fills: Iterable[str], document: ClientDocument) -> bool:
    """Whether fills bring no character that changes the order of text; those that the document has are its own."""
    brought = directions("".join(fills))
    return not brought or brought <= directions(document.text.decode())


def _legible(result: InfillResult, document: ClientDocument) -> InfillResult:
    """Returns a result without the candidates that are not legible; ``no_valid_fill`` where its first one is not.

    A person would see them in another order than a compiler reads them (Trojan Source).
    """
    if not _is_legible(result.fills, document):
        named = ", ".join(f"U+{ord(one):04X}" for one in sorted(directions("".join(result.fills))))
        why = f"the text would be shown in another order than it is read, by {named}"
        return msgspec.structs.replace(result, status="no_valid_fill", message=why, alternatives=())
    others = tuple(fills for fills in result.alternatives if _is_legible(fills, document))
    return msgspec.structs.replace(result, alternatives=others)


class ClientWorkspaces:
    """The client's folders, for an engine that cannot read them: each is read from its first open document on.

    A thread does the work, in order, so that no keystroke waits for it.
    """

    def __init__(self) -> None:
        self._choosers: dict[str, SnippetChooser] = {}
        self._open = ExitStack()
        self._pieces = PieceCounter()
        self._working = ThreadPoolExecutor(1, "lacuna-workspaces")

    def read(self, folder: str) -> None:
        """Begins to read a folder."""
        self._working.submit(self._chooser, folder)

    async def choose(
        self,
        folder: str,
        document: ClientDocument,
        at: int,
        diagnostics: Sequence[Diagnostic],
        signatures: Sequence[Snippet],
    ) -> tuple[Snippet, ...]:
        """Returns the snippets for a cursor at an offset (bytes) of a document, as far as the folder has been read.

        No other thread changes the document meanwhile.
        """

        def chosen() -> tuple[Snippet, ...]:
            return self._chooser(folder).choose(
                *(document.text.decode(), at, document.path, document.language),
                diagnostics=diagnostics,
                signatures=signatures,
                tokenizer=self._pieces,
                budget=BUDGET,
            )

        return await asyncio.get_running_loop().run_in_executor(self._working, chosen)

    def close(self) -> None:
        """Stops the reading, without waiting for it."""
        self._working.submit(self._open.close)
        self._working.shutdown(wait=False)

    def _chooser(self, folder: str) -> "SnippetChooser":
        from lacuna_model.snippets.chooser import SnippetChooser  # takes a while, and few engines are remote

        if folder not in self._choosers:
            self._choosers[folder] = SnippetChooser(Path(folder))
            self._choosers[folder].start()
            self._open.callback(self._choosers[folder].close)
        return self._choosers[folder]
