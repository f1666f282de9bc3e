"""The websocket client that the language server and other tools of this project use."""

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from lacuna_model.core.params import DecodeOptions, Diagnostic, FillGaps, Snippet, Task
from lacuna_server.client import link
from lacuna_server.client.starting import Address, find_or_start
from lacuna_server.wire import protocol
from lacuna_server.wire.protocol import (
    Cancel,
    Change,
    ClientMessage,
    Close,
    Edit,
    Error,
    Feedback,
    FeedbackKind,
    GetStatus,
    Hello,
    Infill,
    Open,
    Progress,
    Result,
    ServerMessage,
    ServiceError,
    Status,
    Step,
    Target,
    Welcome,
)
from lacuna_server.wire.security import is_loopback

__all__ = ["Address", "Client", "find_or_start"]

log = logging.getLogger(__name__)

Answer = Progress | Step | Result | Exception


class Client:
    """One session with the service; it outlives broken connections. Use it as an async context manager.

    The client reconnects with growing pauses. It opens again the ``documents`` that the service has lost, and sends
    again the requests that had no answer yet. Where it cannot reconnect in time, every call raises OSError.
    """

    def __init__(self, name: str, tell: Callable[[OSError], None], documents: Callable[[], Iterable[Open]]) -> None:
        self._name = name
        self._tell = tell
        self._documents = documents
        self._session = ""
        self._connection: ClientConnection | None = None
        self._names_workspaces = False  # allowed only to clients that send a token
        self._connected = asyncio.Event()
        self._sending = asyncio.Lock()
        self._versions: dict[str, int] = {}  # of the documents, as the service has them
        self._infills: dict[str, tuple[Infill, asyncio.Queue[Answer]]] = {}
        self._statuses: deque[asyncio.Future[Status]] = deque()
        self._ids = itertools.count(1)
        self._end: ServiceError | OSError | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def connect(
        cls,
        locate: Address | Callable[[], Awaitable[Address]],
        *,
        name: str = "",
        give_up_s: float = 30.0,
        tell: Callable[[OSError], None] = lambda why: None,
        documents: Callable[[], Iterable[Open]] = tuple,
    ) -> Self:
        """Open a session at an address, or at the address that ``locate`` returns on each attempt.

        ``name`` is the client's name for the service's log. ``tell`` is called for every connection that breaks or
        cannot be made. ``documents`` returns the caller's open documents as they are now, since the client keeps none.
        Raises ServiceError where the service refuses, and OSError where it cannot be reached for ``give_up_s`` seconds.
        """

        async def given() -> Address:
            assert isinstance(locate, Address)
            return locate

        client = cls(name, tell, documents)
        client._spawn(link.keep(client, given if isinstance(locate, Address) else locate, give_up_s))
        try:
            await client._ready()
        except BaseException:
            await client.aclose()
            raise
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the session; requests under way raise ServiceError ``cancelled``."""
        self.ended(ServiceError("cancelled", "the client has ended"))
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def reads_workspaces(self) -> bool:
        """Whether the service reads files of this client's folders; else it knows of other files what is sent."""
        return self._names_workspaces

    # --- requests

    async def open(self, opened: Open) -> None:
        """Open a document, or replace it."""
        async with self._sending:
            await self._open(opened)

    async def _open(self, opened: Open) -> None:
        self._versions[opened.uri] = opened.version
        await self._write(opened)

    async def change(self, uri: str, version: int, edits: Sequence[Edit]) -> None:
        """Apply edits, one after the other, that lead to ``version``. Offsets are UTF-8 bytes.

        A change that the service refuses, and one that it has already, since the document was opened again after it,
        raises nothing.
        """
        async with self._sending:
            if version > self._versions.get(uri, version):
                self._versions[uri] = version
                await self._write(Change(uri, version, tuple(edits)))

    async def close(self, uri: str) -> None:
        """Close a document; its requests are cancelled."""
        async with self._sending:
            self._versions.pop(uri, None)
            await self._write(Close(uri))

    async def infill(
        self,
        targets: Sequence[Target],
        *,
        id: str = "",
        task: Task = FillGaps(),  # noqa: B008 (frozen)
        options: DecodeOptions = DecodeOptions(),  # noqa: B008 (frozen)
        snippets: Sequence[Snippet] = (),
        diagnostics: Sequence[Diagnostic] = (),
        supersede: bool = True,
        snapshots: bool = False,
        wait: bool = True,
    ) -> AsyncGenerator[Progress | Step | Result, None]:
        """Fill regions. Yields progress, steps where ``snapshots`` is true, and the result as the last item.

        ``id`` "" takes a new id; ``feedback`` refers to a request by its id. Closing the iterator, or cancelling the
        task that reads it, cancels the request. Raises ServiceError with the service's code.
        """
        message = Infill(
            id or f"request-{next(self._ids)}",
            tuple(targets),
            task,
            options,
            tuple(snippets),
            tuple(diagnostics),
            supersede,
            snapshots,
            wait,
        )
        if message.id in self._infills:
            raise ServiceError("bad_request", f"a request {message.id} is under way")
        await self._ready()
        answers: asyncio.Queue[Answer] = asyncio.Queue()
        self._infills[message.id] = message, answers
        try:
            await self._send(message)
            while True:
                answer = await answers.get()
                if isinstance(answer, Exception):
                    raise answer
                yield answer
                if isinstance(answer, Result):
                    return
        finally:
            # The request has no answer yet, and its reader has left: the service can stop.
            if self._infills.pop(message.id, None) is not None and self._end is None:
                self._spawn(self._send(Cancel(message.id)))

    async def status(self) -> Status:
        """Ask for the state of the service."""
        await self._ready()
        answer: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._statuses.append(answer)
        await self._send(GetStatus())
        return await answer

    async def feedback(self, id: str, kind: FeedbackKind, *, candidate: int = 0, accepted_bytes: int = 0) -> None:
        """Report what the user did with the fill of request ``id``."""
        await self._ready()
        await self._send(Feedback(id, kind, candidate, accepted_bytes))

    # --- sending

    async def _ready(self) -> None:
        """Wait for a connection. Raises the error that ended the session, if it has ended."""
        await self._connected.wait()
        if self._end is not None:
            raise self._end

    async def _send(self, message: ClientMessage) -> None:
        async with self._sending:
            await self._write(message)

    async def _write(self, message: ClientMessage) -> None:
        """Send a message if connected, else drop it: ``greet`` sends documents and requests on the next connection."""
        if self._end is not None:
            raise self._end
        if self._connection is not None and self._connected.is_set():
            with contextlib.suppress(ConnectionClosed):
                await self._connection.send(self._frame(message))

    def _frame(self, message: ClientMessage) -> str | bytes:
        if isinstance(message, Open) and not self._names_workspaces:
            message = msgspec.structs.replace(message, workspace="")
        return protocol.encode(message, protocol.MSGPACK)

    # --- the connection: ``link`` calls these

    async def greet(self, connection: ClientConnection, address: Address) -> None:
        """Say hello, open again the documents that the service has lost, and send unanswered requests again."""
        async with self._sending:
            self._names_workspaces = bool(address.token)
            await connection.send(self._frame(Hello(self._name, self._session)))
            welcome = protocol.decode_server(await connection.recv())
            if isinstance(welcome, Error) and welcome.code not in ("overloaded", "shutting_down"):
                raise ServiceError(welcome.code, welcome.message)
            if not isinstance(welcome, Welcome):
                raise ConnectionError(getattr(welcome, "message", "the service did not say welcome"))
            self._session = welcome.session
            if self._names_workspaces and not welcome.workspaces and is_loopback(urlsplit(address.url).hostname or ""):
                log.warning("no file of a workspace is read: the token is not the service's, or it serves a cluster")
            self._names_workspaces &= welcome.workspaces
            there = {document.uri: document.version for document in welcome.documents}
            mine = {document.uri: document for document in self._documents()}
            self._versions = {uri: document.version for uri, document in mine.items()}
            messages: list[ClientMessage] = [Close(uri) for uri in there if uri not in mine]
            messages += [document for uri, document in mine.items() if there.get(uri) != document.version]
            messages += [message for message, _ in self._infills.values()]
            messages += [GetStatus() for _ in self._statuses]
            for message in messages:
                await connection.send(self._frame(message))
            self._connection = connection
            self._connected.set()

    def heard(self, message: ServerMessage) -> None:
        """Pass an answer to the call that waits for it."""
        match message:
            case Progress(id=id) | Step(id=id) if id in self._infills:
                self._infills[id][1].put_nowait(message)
            case Result(id=id) if id in self._infills:
                self._infills.pop(id)[1].put_nowait(message)
            case Error(id=id) if id in self._infills:
                error = ServiceError(message.code, message.message, message.retry_after_ms)
                self._infills.pop(id)[1].put_nowait(error)
            case Error(id="", uri=uri) if uri and message.code != "too_large":
                if message.code == "unauthorized":
                    log.warning("no file of a workspace is read, the token is not the service's: %s", message.message)
                    self._names_workspaces = False
                self._spawn(self._open_again(uri, message.retry_after_ms))
            case Status() if self._statuses:
                answer = self._statuses.popleft()
                if not answer.done():
                    answer.set_result(message)

    def broken(self, why: OSError) -> None:
        """Wait for the next connection."""
        self._connected.clear()
        self._connection = None
        self._tell(why)

    def ended(self, why: ServiceError | OSError) -> None:
        """End the session: every waiting call, and every later one, raises ``why``."""
        if self._end is not None:
            return
        self._end = why
        self._connected.set()
        for _, answers in self._infills.values():
            answers.put_nowait(why)
        for answer in self._statuses:
            if not answer.done():
                answer.set_exception(why)

    async def _open_again(self, uri: str, after_ms: int) -> None:
        """Send the whole document again, because the service refused a change and closed it."""
        await asyncio.sleep(after_ms / 1e3)
        async with self._sending:
            for mine in self._documents():
                if mine.uri == uri:
                    await self._open(mine)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
