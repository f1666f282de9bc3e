"""Connects one client with the engine: finds or starts it, reconnects when it dies, and sends it every document."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import PurePath

from lacuna_lsp.client.news import News, State
from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.engine.legible import is_legible, legible
from lacuna_lsp.engine.workspaces import ClientWorkspaces
from lacuna_model.core.params import (
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
from lacuna_server.client.client import Address, Client
from lacuna_server.client.starting import TOKEN_VARIABLE, arguments
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import (
    Edit,
    FeedbackKind,
    ModelState,
    Open,
    Progress,
    Result,
    ServiceError,
    Status,
    Step,
    Target,
)
from lacuna_server.wire.settings import Settings

log = logging.getLogger(__name__)

FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 30.0
POLL_S = 0.05
# The service closes larger documents, so every keystroke would send the whole text again.
MAX_DOCUMENT_BYTES = ServerConfig().max_document_bytes

_STATES: dict[ModelState, State] = {"loading": "loading", "restarting": "loading", "ready": "ready", "failed": "failed"}
Answer = Callable[[InfillRequest], Awaitable[InfillResult]]
Send = Callable[[Client], Awaitable[None]]


class ServiceConnection:
    """One session with the service, from the client's first message to its last.

    ``locate`` returns the service's address at every attempt; it takes the arguments with which to start a service.
    ``documents`` returns the client's open documents, ``settings`` its settings. ``tell`` is called at every change of
    state, ``warn`` with messages for the user. ``folders`` are the client's folders.
    """

    def __init__(
        self,
        locate: Callable[..., Awaitable[Address]],
        documents: Callable[[], Sequence[ClientDocument]],
        tell: Callable[[News], None],
        warn: Callable[[str], None] = log.warning,
        settings: Callable[[], Settings] = Settings,
    ) -> None:
        self._locate = locate
        self._warn = warn
        self._documents = documents
        self._tell = tell
        self._settings = settings
        self._client: Client | None = None
        self._outbox: asyncio.Queue[Send] = asyncio.Queue()
        # Of the documents that the service is to have. Numbers are never used twice, so that each names one text.
        self._versions: dict[str, int] = {}
        self._numbers = itertools.count()
        self._beside: dict[str, Open] = {}  # documents of the service that no client has open
        self._awake = asyncio.Event()
        self._workspaces = ClientWorkspaces()
        self.folders: list[str] = []
        self.follows_edits = False  # the model was made for next edits
        self.news = News("starting")

    async def run(self) -> None:
        """Keeps a session until cancelled; reconnects with growing pauses."""
        try:
            await self._connect_again_and_again()
        finally:
            self._workspaces.close()

    async def _connect_again_and_again(self) -> None:
        pause = FIRST_PAUSE_S
        while True:
            self._versions.clear()
            try:
                async with await Client.connect(
                    self._located, name="lacuna-lsp", tell=self._broken, documents=self._opened
                ) as client:
                    pause = FIRST_PAUSE_S
                    await self._serve(client)
            except ServiceError as error:
                log.warning("no engine: %s", error)
                todo = f": set ${TOKEN_VARIABLE} for lacuna-lsp" if error.code == "unauthorized" else ""
                self._now(News("failed", message=f"{error}{todo}"))
            except OSError as error:
                log.warning("no engine: %s", error)
                self._now(News("unreachable", message=str(error)))
            self._client = None
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_S)

    async def _located(self) -> Address:
        address = await self._locate(*arguments(self._settings()))
        if address.unencrypted:
            self._warn(
                f"the token and every text go to {address.url} unencrypted, so that others on the way can read them: "
                "use https:// or an ssh tunnel"
            )
        return address

    def _broken(self, why: OSError) -> None:
        """Handles a connection that broke or could not be made; ``Client`` then retries."""
        if self._client is None:
            self._now(News("unreachable", message=str(why)))
        else:
            self._now(News("lost", message="the connection to the engine broke"))
            self._awake.set()

    async def _serve(self, client: Client) -> None:
        self._outbox = asyncio.Queue()
        self._client = client
        for document in self._documents():
            self.open(document)
        sending = asyncio.create_task(self._send_all(client))
        try:
            await self._outbox.join()  # opening a document makes the service retry a model that failed to load
            await self._watch(client)
        finally:
            sending.cancel()

    async def _send_all(self, client: Client) -> None:
        """Sends documents and feedback in their order of arrival."""
        while True:
            send = await self._outbox.get()
            try:
                await send(client)
                if self.news.state == "failed":
                    self._awake.set()
            except Exception as error:  # send the rest of the queue: every request waits for it
                log.warning("%s", error)
                self._awake.set()
            finally:
                self._outbox.task_done()

    async def _watch(self, client: Client) -> None:
        """Follows the service's state: by polling while the model loads, later when woken."""
        while True:
            self._awake.clear()  # an event from here on may be newer than the answer
            status = await client.status()
            self.follows_edits = status.follows_edits
            self._now(_news(status))
            self._compare(status.model)
            pause = {"loading": POLL_S, "ready": None}.get(self.news.state, MAX_PAUSE_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._awake.wait()

    def check(self) -> None:
        """Looks at the service's state again, because the settings have changed."""
        self._awake.set()

    def _compare(self, model: str) -> None:
        """Warns of a service that was started with another model than the settings name."""
        wanted = self._settings().model
        if wanted and models.absolute(wanted) != models.absolute(model):
            self._warn(f"the running service has the model {model}, not {wanted}; lacuna stop ends it")

    def _now(self, news: News) -> None:
        if news != self.news:
            self.news = news
            self._tell(news)

    def workspace(self, path: str) -> str:
        """Returns the innermost of the client's folders that contains a file; "" if there is none, or none is read."""
        if not self._settings().workspace:
            return ""
        around = [folder for folder in self.folders if PurePath(path).is_relative_to(folder)]
        return max(around, key=len, default="")

    def _read_here(self, path: str) -> str:
        """Returns the workspace of a file if this server has to read it, because the engine does not; else ""."""
        return self.workspace(path) if self._client is not None and not self._client.reads_workspaces else ""

    # --- documents

    def open(self, document: ClientDocument) -> None:
        """Sends a document as it is now, unless it is larger than the service accepts."""
        if document.size > MAX_DOCUMENT_BYTES:
            return
        self._versions[document.uri] = next(self._numbers)
        opened = self._opening(document)
        self._workspaces.opened(self._read_here(document.path), document.path, opened.text)
        self._post(lambda client: client.open(opened))

    def _opening(self, document: ClientDocument) -> Open:
        """The message that opens a document as it is now."""
        text, workspace = document.text.decode(), self.workspace(document.path)
        version = self._versions[document.uri]
        return Open(document.uri, text, version, document.path, document.language, workspace)

    def _opened(self) -> list[Open]:
        """All documents that the service is to have, as they are now."""
        mine = [self._opening(document) for document in self._documents() if document.uri in self._versions]
        return [*mine, *self._beside.values()]

    def change(self, document: ClientDocument, edits: Sequence[Edit]) -> None:
        """Sends the edits of a document, each to the result of the previous one."""
        if document.uri not in self._versions:
            self.open(document)
        elif document.size > MAX_DOCUMENT_BYTES:
            self.close(document)
        else:
            version = self._versions[document.uri] = next(self._numbers)
            self._post(lambda client: client.change(document.uri, version, edits))
            if folder := self._read_here(document.path):
                self._workspaces.edited(folder, document.path, document.text.decode(), edits[-1].start if edits else 0)

    def close(self, document: ClientDocument) -> None:
        """Reports that a document is closed."""
        if self._versions.pop(document.uri, None) is not None:
            self._workspaces.closed(self._read_here(document.path), document.path)
            self._post(lambda client: client.close(document.uri))

    def feedback(self, request: str, kind: FeedbackKind, *, candidate: int = 0, accepted_bytes: int = 0) -> None:
        """Reports whether a fill was shown, accepted or rejected."""
        self._post(lambda client: client.feedback(request, kind, candidate=candidate, accepted_bytes=accepted_bytes))

    def _post(self, send: Send) -> None:
        if self._client is not None:
            self._outbox.put_nowait(send)

    # --- requests

    async def infill(
        self,
        document: ClientDocument,
        regions: Sequence[Region],
        *,
        id: str = "",
        task: Task = FillGaps(),  # noqa: B008 (frozen)
        options: DecodeOptions = DecodeOptions(),  # noqa: B008 (frozen)
        snippets: Sequence[Snippet] = (),
        diagnostics: Sequence[Diagnostic] = (),
        supersede: bool = True,
        typed: Edit | None = None,
        told: Callable[[Snapshot], None] | None = None,
    ) -> InfillResult:
        """Fills regions of a document; raises ServiceError, with code ``loading`` if no engine is ready.

        ``typed`` is an edit of the document for this request alone; ``regions`` refer to the edited text. Without
        ``snippets``, the engine chooses them from the client's folders; if it does not read these, this server does.
        ``told`` is called with the canvas after each step.
        """
        client = self._there()
        if document.uri not in self._versions:
            raise ServiceError("too_large", f"files of more than {MAX_DOCUMENT_BYTES >> 20} MiB are not filled")
        edits = () if typed is None else (typed,)
        target = Target(document.uri, self._versions[document.uri], tuple(regions), edits)
        if not snippets and (folder := self._read_here(document.path)):
            text, at = document.text.decode(), regions[0].start
            snippets = await self._workspaces.choose(folder, document.path, document.language, text, at, diagnostics)
        await self._outbox.join()
        return await self._result(
            client.infill(
                [target],
                id=id,
                task=task,
                options=options,
                snippets=snippets,
                diagnostics=diagnostics,
                supersede=supersede,
                snapshots=told is not None,
            ),
            lambda: document.text.decode(),
            told,
        )

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[Answer]:
        """Yields a function that answers requests for texts that are no open documents, such as files to refactor."""
        mine = set[str]()

        async def answer(request: InfillRequest) -> InfillResult:
            client = self._there()
            uri, workspace = f"lacuna:{request.path}", self.workspace(request.path)
            opened = Open(uri, request.text, next(self._numbers), request.path, request.language, workspace)
            self._beside[uri] = opened
            mine.add(uri)
            await client.open(opened)
            target, folder = Target(uri, opened.version, request.regions), self._read_here(request.path)
            at = request.regions[0].start
            snippets = await self._workspaces.choose(folder, request.path, request.language, request.text, at, ())
            return await self._result(
                client.infill([target], task=request.task, options=request.options, snippets=snippets, supersede=False),
                lambda: request.text,
            )

        try:
            yield answer
        finally:
            for uri in mine:
                self._beside.pop(uri, None)
                self._post(partial(Client.close, uri=uri))

    async def _result(
        self,
        answers: AsyncIterator[Progress | Step | Result],
        document: Callable[[], str],
        told: Callable[[Snapshot], None] | None = None,
    ) -> InfillResult:
        """Waits for a result; ``document`` returns the text that is filled."""
        results = list[Result]()
        try:
            async for answer in answers:
                if isinstance(answer, Result):
                    results.append(answer)
                elif isinstance(answer, Step) and told and is_legible(answer.snapshot.written, document):
                    told(answer.snapshot)
        except ServiceError as error:
            if error.code in ("worker_crashed", "loading", "model_failed"):
                self._awake.set()
            raise
        return legible(results[0].results[0].result, document)

    def _there(self) -> Client:
        if self._client is None or self.news.state != "ready":
            raise ServiceError("loading", f"no engine yet: {self.news.message or self.news.state}")
        return self._client

    async def status(self) -> Status | None:
        """Returns the service's status, or None without a connection."""
        return await self._client.status() if self._client is not None and self.news.state != "lost" else None


def _news(status: Status) -> News:
    return News(_STATES[status.state], status.fraction, status.detail or status.model)
