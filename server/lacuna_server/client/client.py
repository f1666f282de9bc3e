"""The websocket client that the language server and other tools of this project use."""

import asyncio
import contextlib
import itertools
import logging
import random
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from lacuna_server.client.lifecycle import Address
from lacuna_server.client.starting import find_or_start
from lacuna_server.wire import protocol
from lacuna_server.wire.config import is_loopback
from lacuna_server.wire.documents import apply
from lacuna_server.wire.protocol import Edit, Error, Infill, Open, Progress, Result, ServiceError, Status, Step

__all__ = ["Address", "Client", "find_or_start"]

log = logging.getLogger(__name__)

MAX_FRAME_BYTES = 64 * 1024 * 1024
PATH = "/v1/ws"
REFUSALS: dict[int, tuple[protocol.ErrorCode, str]] = {
    401: ("unauthorized", "does not take the token"),
    403: ("forbidden", "forbids it (403)"),
}

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
LONGEST_AFTER_REFUSAL_S = 30.0
LAST_WORDS_S = 1.0  # for what is still to be sent when the client ends

Answer = Progress | Step | Result | Exception


@dataclass(slots=True)
class SentDocument:
    """A document as the service is to have it: ``opened`` has all but its text and version."""

    opened: Open
    text: bytearray
    version: int

    @property
    def message(self) -> Open:
        """What opens it as it is now."""
        return msgspec.structs.replace(self.opened, text=self.text.decode(), version=self.version)


class Client:
    """One session with the service; it outlives broken connections. Use it as an async context manager.

    The client keeps the open ``documents``, and counts their versions: no two texts of a uri have the same one. After a
    break it connects again, with growing pauses, opens the documents again, and sends again the requests that had no
    answer yet. What was not sent by then is in the documents and requests, and is dropped.
    """

    def __init__(
        self,
        locate: Address | Callable[[], Awaitable[Address]],
        *,
        name: str = "",
        give_up_s: float = 30.0,
        reconnects: bool = False,
        tell: Callable[[ServiceError | OSError, bool], None] = lambda why, lately: None,
    ) -> None:
        """``locate`` is the service's address, or returns it on each attempt; ``name`` is for the service's log.

        ``tell`` is called for every connection that breaks or cannot be made, with the reason and whether the session
        was connected less than ``give_up_s`` seconds ago. After that time, and where the service refuses, every waiting
        call raises the reason, and every later one, too, unless the client ``reconnects`` and connects again.
        """
        self._locate = locate
        self._name = name
        self._give_up_s = give_up_s
        self._reconnects = reconnects
        self._tell = tell
        self._session = secrets.token_urlsafe(16)
        self._connected = asyncio.Event()
        self._outbox: asyncio.Queue[str | bytes] = asyncio.Queue()
        self.documents: dict[str, SentDocument] = {}
        self._closed = -1  # the highest version of the documents that are closed
        self._infills: dict[str, tuple[Infill, asyncio.Queue[Answer]]] = {}
        self._statuses: deque[asyncio.Future[Status]] = deque()
        self._ids = itertools.count(1)
        self._end: ServiceError | OSError | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # Whether the service reads files of this client's folders, as it does for clients that send its token; else it
        # knows of other files what is sent. Nobody knows before the first connection.
        self.reads_workspaces = True

    @classmethod
    async def connect(cls, locate: Address | Callable[[], Awaitable[Address]], **options: Any) -> Self:
        """Open a session, and wait for its first connection; ``options`` are those of the constructor.

        Raises ServiceError where the service refuses, and OSError where it cannot be reached for ``give_up_s`` seconds.
        """
        client = cls(locate, **options)
        client.start()
        try:
            await client._connected.wait()
            if client._end is not None:
                raise client._end
        except BaseException:
            await client.aclose()
            raise
        return client

    def start(self) -> None:
        """Begin to connect."""
        self._spawn(self._keep())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the session, once all is sent; requests under way raise ServiceError ``cancelled``."""
        if self.is_connected:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_S):
                    await self._outbox.join()
        self._reconnects = False
        self._give_up(ServiceError("cancelled", "the client has ended"))
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._connected.is_set() and self._end is None

    # --- documents: what is sent arrives in its order, and before every later request

    def open(self, opened: Open) -> None:
        """Open a document, or replace it; in its version, or in a higher one where the uri may have had that one."""
        before = self.documents.get(opened.uri)
        version = max(opened.version, 1 + (self._closed if before is None else before.version))
        bare = msgspec.structs.replace(opened, text="")
        self.documents[opened.uri] = document = SentDocument(bare, bytearray(opened.text.encode()), version)
        self._post(document.message)

    def change(self, uri: str, edits: Sequence[Edit]) -> None:
        """Apply edits to an open document, one after the other, a thousand at most. Offsets are UTF-8 bytes.

        Raises ServiceError ``bad_request``, and changes nothing, for an edit that is out of range.
        """
        document = self.documents[uri]
        document.text = apply(document.text, edits)
        document.version += 1
        self._post(protocol.Change(uri, document.version, tuple(edits)))

    def close(self, uri: str) -> None:
        """Close a document; its requests are cancelled."""
        if (document := self.documents.pop(uri, None)) is not None:
            self._closed = max(self._closed, document.version)
            self._post(protocol.Close(uri))

    # --- requests

    async def infill(self, message: Infill) -> AsyncGenerator[Progress | Step | Result, None]:
        """Fill regions. Yields progress, steps where it asks for ``snapshots``, and the result as the last item.

        An ``id`` of "" takes a new id; ``feedback`` refers to a request by its id. Closing the iterator, or cancelling
        the task that reads it, cancels the request. Raises ServiceError with the service's code.
        """
        message = message if message.id else msgspec.structs.replace(message, id=f"request-{next(self._ids)}")
        if message.id in self._infills:
            raise ServiceError("bad_request", f"a request {message.id} is under way")
        self._post(message)
        answers: asyncio.Queue[Answer] = asyncio.Queue()
        self._infills[message.id] = message, answers
        try:
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
                self._post(protocol.Cancel(message.id))

    async def status(self) -> Status:
        """Ask for the state of the service."""
        answer: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._post(protocol.GetStatus())
        self._statuses.append(answer)
        return await answer

    def feedback(self, id: str, kind: protocol.FeedbackKind, *, candidate: int = 0) -> None:
        """Report what the user did with the fill of request ``id``."""
        self._post(protocol.Feedback(id, kind, candidate))

    def _post(self, message: protocol.ClientMessage) -> None:
        """Send a message after all others; without a connection, drop it: ``greet`` sends what is needed."""
        if self._end is not None:
            raise self._end
        if self._connected.is_set():
            if isinstance(message, Open) and not self.reads_workspaces:
                message = msgspec.structs.replace(message, workspace="")
            self._outbox.put_nowait(protocol.encode(message, protocol.MSGPACK))

    # --- the connection

    async def _keep(self) -> None:
        """Connect again and again, until the service refuses or has been unreachable for ``give_up_s`` seconds.

        One that ``reconnects`` says so to those who wait, and tries again.
        """
        pause, lost, stood = FIRST_PAUSE_S, time.monotonic(), False
        while True:
            where, longest = "the service", LONGEST_PAUSE_S
            reason: ServiceError | OSError
            try:
                address = self._locate if isinstance(self._locate, Address) else await self._locate()
                where = address.url
                async with await connection_to(address) as connection:
                    await self.greet(connection, address)
                    pause, lost, stood = FIRST_PAUSE_S, 0.0, True
                    sending = asyncio.create_task(self._send(connection))
                    try:
                        async for frame in connection:
                            self.heard(protocol.decode_server(frame))
                    finally:
                        sending.cancel()
                        await asyncio.gather(sending, return_exceptions=True)
                reason = ConnectionError(f"{where} does not answer: it closed the connection")
            except ServiceError as error:
                reason, longest = error, LONGEST_AFTER_REFUSAL_S
            except (OSError, WebSocketException) as error:
                why = "" if isinstance(error, ConnectionRefusedError) else f": {error}"
                reason = ConnectionError(f"{where} does not answer{why}")
            lost = lost or time.monotonic()
            given_up = isinstance(reason, ServiceError) or time.monotonic() - lost > self._give_up_s
            stood = stood and not given_up
            self._connected.clear()
            self._tell(reason, stood)
            if given_up:
                self._give_up(reason)
                if not self._reconnects:
                    return
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, longest)

    async def greet(self, connection: ClientConnection, address: Address) -> None:
        """Say hello, open the documents again, and send unanswered requests again."""
        await connection.send(protocol.encode(protocol.Hello(self._name, self._session), protocol.MSGPACK))
        try:
            welcome = protocol.decode_server(await connection.recv())
        except ServiceError as error:
            raise ServiceError(
                error.code, f"the service that runs is of another version; `lacuna stop` ends it ({error})"
            ) from error
        if isinstance(welcome, Error) and welcome.code not in ("overloaded", "shutting_down"):
            raise ServiceError(welcome.code, welcome.message)
        if not isinstance(welcome, protocol.Welcome):
            raise ConnectionError(getattr(welcome, "message", "the service did not say welcome"))
        if address.token and not welcome.workspaces and is_loopback(urlsplit(address.url).hostname or ""):
            log.warning("no file of a workspace is read: the token is not the service's, or it serves a cluster")
        self.reads_workspaces = bool(address.token) and welcome.workspaces
        messages: list[protocol.ClientMessage] = [document.message for document in self.documents.values()]
        messages += [message for message, _ in self._infills.values()]
        messages += [protocol.GetStatus() for _ in self._statuses]
        self._outbox = asyncio.Queue()
        self._connected.set()
        for message in messages:
            self._post(message)

    async def _send(self, connection: ClientConnection) -> None:
        """Send what is posted until cancelled. Raises ConnectionClosed."""
        while True:
            await connection.send(await self._outbox.get())
            self._outbox.task_done()

    def heard(self, message: protocol.ServerMessage) -> None:
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
                self._spawn(self._open_again(uri, message.retry_after_ms))
            case Status() if self._statuses:
                answer = self._statuses.popleft()
                if not answer.done():
                    answer.set_result(message)

    def _give_up(self, why: ServiceError | OSError) -> None:
        """Let every waiting call raise ``why``, and every later one, unless the client goes on."""
        if self._end is not None:
            return
        for _, answers in self._infills.values():
            answers.put_nowait(why)
        for answer in self._statuses:
            if not answer.done():
                answer.set_exception(why)
        self._infills.clear()
        self._statuses.clear()
        if not self._reconnects:
            self._end = why
            self._connected.set()

    async def _open_again(self, uri: str, after_ms: int) -> None:
        """Send the whole document again, because the service refused a change and closed it."""
        await asyncio.sleep(after_ms / 1e3)
        if (document := self.documents.get(uri)) is not None and self._end is None:
            self._post(document.message)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def connection_to(address: Address) -> ClientConnection:
    """Return a connection.

    Raises ServiceError for a refusal that is final, and OSError or WebSocketException where another attempt may help.
    """
    host = urlsplit(address.url).hostname or ""
    by: dict[str, Any] = {"unix": True, "path": address.socket} if Path(address.socket).is_socket() else {}
    try:
        return await connect(
            f"ws{address.url.removeprefix('http').rstrip('/')}{PATH}",
            subprotocols=[Subprotocol(protocol.MSGPACK)],
            additional_headers={"Authorization": f"Bearer {address.token}"} if address.token else None,
            max_size=MAX_FRAME_BYTES,
            compression=None,
            proxy=None if is_loopback(host) else True,
            **by,
        )
    except InvalidStatus as error:
        if (refusal := REFUSALS.get(error.response.status_code)) is None:
            raise
        code, what = refusal
        if code == "unauthorized" and not address.token:
            what = "asks for a token"
        raise ServiceError(code, f"{address.url} {what}") from None
