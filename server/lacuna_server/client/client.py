"""The client of the websocket: what the language server and other tools of this project talk to the service with."""

import asyncio
import contextlib
import itertools
import logging
import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, Self

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from lacuna_model.core.params import DecodeOptions, Diagnostic, Snippet
from lacuna_server.client import link
from lacuna_server.client.starting import Address, find_or_start
from lacuna_server.wire import protocol
from lacuna_server.wire.documents import Documents
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

__all__ = ["Address", "Client", "find_or_start"]

log = logging.getLogger(__name__)

Answer = Progress | Step | Result | Exception


class Client:
    """One session with the service; it outlives broken connections.

    A broken connection is made again with growing pauses; documents are opened again where the service has lost
    them, and requests that had no answer yet are sent once more. Where that takes too long, every call raises
    OSError. Use it as an async context manager.
    """

    def __init__(self, name: str, tell: Callable[[OSError], None]) -> None:
        self._name = name
        self._tell = tell
        self._session = ""
        self._connection: ClientConnection | None = None
        self._names_workspaces = False  # only who sends a token may
        self._connected = asyncio.Event()
        self._sending = asyncio.Lock()
        self._documents = Documents(max_documents=sys.maxsize, max_bytes=sys.maxsize)
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
    ) -> Self:
        """Open a session at an address, or at what ``locate`` answers (such as ``find_or_start``) on each attempt.

        ``name`` is the client's, for the log; ``tell`` hears of every connection that breaks or cannot be made. Raises
        ServiceError where the service refuses, and OSError where it cannot be reached within ``give_up_s``.
        """

        async def given() -> Address:
            assert isinstance(locate, Address)
            return locate

        client = cls(name, tell)
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

    # --- what one asks for

    async def open(
        self, uri: str, text: str, version: int = 0, *, path: str = "", language: str = "", workspace: str = ""
    ) -> None:
        """Open a document, or replace it."""
        opened = Open(uri, text, version, path, language, workspace)
        async with self._sending:
            self._documents.open(opened)
            await self._write(opened)

    async def change(self, uri: str, version: int, edits: Sequence[Edit]) -> None:
        """Apply edits (UTF-8 byte offsets, each to what the one before left) that lead to ``version``.

        Raises ServiceError where they do not fit the document, which then has to be opened again.
        """
        change = Change(uri, version, tuple(edits))
        async with self._sending:
            try:
                self._documents.change(change)
            except ServiceError:
                await self._write(Close(uri))
                raise
            await self._write(change)

    async def close(self, uri: str) -> None:
        """Close a document; its requests are cancelled."""
        async with self._sending:
            self._documents.close(uri)
            await self._write(Close(uri))

    async def infill(
        self,
        targets: Sequence[Target],
        *,
        id: str = "",
        options: DecodeOptions = DecodeOptions(),  # noqa: B008 (frozen)
        candidates: int = 1,
        snippets: Sequence[Snippet] = (),
        diagnostics: Sequence[Diagnostic] = (),
        supersede: bool = True,
        snapshots: bool = False,
        wait: bool = True,
    ) -> AsyncGenerator[Progress | Step | Result, None]:
        """Fill regions: progress and, where asked for, steps, and the result as the last item.

        ``id`` "" takes a new one; feedback names it. Raises ServiceError with the service's code. Closing the
        iterator or cancelling the task that reads it cancels the request.
        """
        message = Infill(
            id or f"request-{next(self._ids)}",
            tuple(targets),
            options,
            candidates,
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
            # Without an answer, nobody waits for one any more: the service need not go on.
            if self._infills.pop(message.id, None) is not None and self._end is None:
                self._spawn(self._send(Cancel(message.id)))

    async def status(self) -> Status:
        """How the service is."""
        await self._ready()
        answer: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._statuses.append(answer)
        await self._send(GetStatus())
        return await answer

    async def feedback(self, id: str, kind: FeedbackKind, *, candidate: int = 0, accepted_bytes: int = 0) -> None:
        """Tell what became of the fill of request ``id``."""
        await self._ready()
        await self._send(Feedback(id, kind, candidate, accepted_bytes))

    # --- sending

    async def _ready(self) -> None:
        """Wait for a connection; raises what ended the session."""
        await self._connected.wait()
        if self._end is not None:
            raise self._end

    async def _send(self, message: ClientMessage) -> None:
        async with self._sending:
            await self._write(message)

    async def _write(self, message: ClientMessage) -> None:
        """Send where there is a connection; a new one begins with all that matters of what was not sent."""
        if self._end is not None:
            raise self._end
        if self._connection is not None and self._connected.is_set():
            with contextlib.suppress(ConnectionClosed):
                await self._connection.send(self._frame(message))

    def _frame(self, message: ClientMessage) -> str | bytes:
        if isinstance(message, Open) and not self._names_workspaces:
            message = msgspec.structs.replace(message, workspace="")
        return protocol.encode(message, protocol.MSGPACK)

    # --- the connection, as ``link`` tells of it

    async def greet(self, connection: ClientConnection, address: Address) -> None:
        """Say hello, open again what the service has lost, and ask again what it has not answered."""
        async with self._sending:
            self._names_workspaces = bool(address.token)
            await connection.send(self._frame(Hello(self._name, self._session)))
            welcome = protocol.decode_server(await connection.recv())
            if isinstance(welcome, Error) and welcome.code not in ("overloaded", "shutting_down"):
                raise ServiceError(welcome.code, welcome.message)
            if not isinstance(welcome, Welcome):
                raise ConnectionError(getattr(welcome, "message", "the service did not say welcome"))
            self._session = welcome.session
            there = {document.uri: document.version for document in welcome.documents}
            messages: list[ClientMessage] = [Close(uri) for uri in there if uri not in self._documents]
            messages += [mine for mine in self._documents.opened() if there.get(mine.uri) != mine.version]
            messages += [message for message, _ in self._infills.values()]
            messages += [GetStatus() for _ in self._statuses]
            for message in messages:
                await connection.send(self._frame(message))
            self._connection = connection
            self._connected.set()

    def heard(self, message: ServerMessage) -> None:
        """Pass an answer on to whoever waits for it."""
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
        """Tell everybody who waits, now and later."""
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
        """The service has closed a document because it refused a change: show it the whole."""
        await asyncio.sleep(after_ms / 1e3)
        async with self._sending:
            for mine in self._documents.opened():
                if mine.uri == uri:
                    await self._write(mine)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
