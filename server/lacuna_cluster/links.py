"""The connections between ingresses and engine replicas: their messages, both ends, and the load of each replica.

There is one TCP connection from an ingress to a replica, with all requests in it. Ray says which replica and at which
address; the questions and answers themselves go past Ray, because a call of an actor costs some milliseconds of CPU on
both sides, and a request needs several. A frame is as between the service and its worker (``wire.frames``). The ingress
knocks, and then asks; each question has an ``id`` of its connection, and its replies have the same one, up to the one
that ends it.
"""

import asyncio
import hmac
import itertools
import secrets
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import NamedTuple

import msgspec
import structlog

from lacuna_model.core.params import InfillResult, Snapshot
from lacuna_server.wire import frames
from lacuna_server.wire.frames import Frame, Submission
from lacuna_server.wire.protocol import ErrorCode, Status
from lacuna_server.worker.tickets import Waiting

log = structlog.get_logger(__name__)

CONNECT_S = 2.0
# A replica whose machine has gone without a word is given up after so long.
SILENCE_S = 5
# So long a replica that could not be reached comes last; by then Ray Serve knows whether it is dead.
LOST_S = 15.0
KNOCK_S = 5.0
MAX_KNOCK_BYTES = 1024

# --- from the ingress


class Knock(Frame, frozen=True):
    """The first message: proves with the replica's secret that it comes from an ingress."""

    secret: str


class Ask(Frame, frozen=True):
    """Fill a request with a model; its session names the user, too."""

    id: int
    model: str
    submission: Submission


class Drop(Frame, frozen=True):
    """Stop the work on a question; no reply follows."""

    id: int


# --- from the replica


class Told(Frame, frozen=True):
    """Says why there is no answer yet."""

    id: int
    waiting: Waiting


class Shown(Frame, frozen=True):
    """Shows the fills after a step."""

    id: int
    snapshot: Snapshot


class Answered(Frame, frozen=True):
    """Ends the question with its result, after ``waited_s`` in the queue, ``busy_s`` of work and ``steps`` steps."""

    id: int
    result: InfillResult
    waited_s: float
    busy_s: float
    steps: int


class Declined(Frame, frozen=True):
    """Ends the question with an error."""

    id: int
    code: ErrorCode
    message: str
    retry_after_ms: int


Question = Knock | Ask | Drop
Reply = Told | Shown | Answered | Declined

# --- figures, through Ray


class EngineFigures(msgspec.Struct, frozen=True):
    """What an engine replica reports of itself: the status of each model that it holds."""

    replica: str
    statuses: dict[str, Status]

    @property
    def num_requests(self) -> int:
        """The requests that wait or run."""
        return sum(status.queued + status.running for status in self.statuses.values())


class IngressFigures(msgspec.Struct, frozen=True):
    """What an ingress reports to the others: the requests that each user has made with it in the present minute."""

    replica: str
    minute: int
    used: dict[str, int]


QUESTION: msgspec.msgpack.Decoder[Question] = msgspec.msgpack.Decoder(Question)
REPLY: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)
ENGINE_FIGURES = msgspec.msgpack.Decoder(EngineFigures)
INGRESS_FIGURES = msgspec.msgpack.Decoder(IngressFigures)


def prompt(writer: asyncio.StreamWriter) -> None:
    """Send small frames at once, and notice within ``SILENCE_S`` seconds that the other machine has gone."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, SILENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE_S * 1000)


# --- the side of an ingress


class Loads:
    """Requests by replica: those of this ingress, exactly, and those of the others, as of the last look."""

    def __init__(self) -> None:
        self._own: Counter[str] = Counter()
        self._others: Counter[str] = Counter()
        self._lost: dict[str, float] = {}

    def lost(self, replica: str) -> None:
        """Note that the connection to a replica broke. Ray Serve learns some seconds later that it is dead."""
        self._lost[replica] = time.monotonic()

    def found(self, replica: str) -> None:
        """Note that a replica can be reached."""
        self._lost.pop(replica, None)

    def is_lost(self, replica: str) -> bool:
        """Return whether the connection to a replica broke lately, and it could not be reached since."""
        return time.monotonic() - self._lost.get(replica, -LOST_S) < LOST_S

    def begin(self, replica: str) -> None:
        """Count a request that this ingress sends to a replica."""
        self._own[replica] += 1

    def end(self, replica: str) -> None:
        """Count the end of such a request."""
        self._own[replica] -= 1

    def reported(self, replica: str, total: int) -> None:
        """Take over how many requests a replica says that it has."""
        self._others[replica] = max(0, total - self._own[replica])

    def of(self, replica: str) -> int:
        """Return the number of requests of a replica."""
        return self._own[replica] + self._others[replica]


# Of this process: Ray Serve makes the router, so nobody can hand it over.
LOADS = Loads()


class ReplicaAddress(NamedTuple):
    """The address of a replica, and the secret that it asks for."""

    replica: str
    host: str
    port: int
    secret: str


class Lost(ConnectionError):
    """The connection to a replica broke, or cannot be made."""


class Unreachable(Lost):
    """The connection cannot be made, so that nothing was asked."""


class Links:
    """The open connections by replica."""

    def __init__(self) -> None:
        self._links: dict[ReplicaAddress, Link] = {}
        self._opening: dict[ReplicaAddress, asyncio.Lock] = {}

    async def ask(self, where: ReplicaAddress, ask: Ask) -> AsyncGenerator[Reply]:
        """Send a question and yield the replies. Leaving the iterator stops the work on it. Raises Lost."""
        link = await self._link(where)
        LOADS.begin(where.replica)
        try:
            async for reply in link.ask(ask):
                yield reply
        except Lost:
            LOADS.lost(where.replica)
            raise
        finally:
            LOADS.end(where.replica)

    def close(self) -> None:
        """Close every connection."""
        for link in self._links.values():
            link.close()

    async def _link(self, where: ReplicaAddress) -> "Link":
        if (link := self._links.get(where)) is not None and not link.broken:
            return link
        async with self._opening.setdefault(where, asyncio.Lock()):
            if (link := self._links.get(where)) is None or link.broken:
                self._links = {there: one for there, one in self._links.items() if not one.broken}
                link = self._links[where] = await Link.open(where)
            return link


class Link:
    """A connection to one replica."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Queue[Reply | None]] = {}
        self._reading = asyncio.create_task(self._read(reader))
        self.broken = False

    @classmethod
    async def open(cls, where: ReplicaAddress) -> "Link":
        """Connect. Raises Unreachable."""
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(where.host, where.port)
        except (OSError, TimeoutError) as error:
            LOADS.lost(where.replica)
            raise Unreachable(f"{where.replica}: {error}") from None
        LOADS.found(where.replica)
        prompt(writer)
        writer.write(frames.encode(Knock(where.secret)))
        return cls(reader, writer)

    async def ask(self, ask: Ask) -> AsyncGenerator[Reply]:
        """Send a question and yield the replies, up to the one that ends it. Raises Lost."""
        id = next(self._ids)
        replies = self._waiting[id] = asyncio.Queue()
        ended = False
        try:
            self._write(msgspec.structs.replace(ask, id=id))
            while not ended:
                if (reply := await replies.get()) is None:
                    raise Lost("the connection to the replica broke")
                ended = isinstance(reply, Answered | Declined)
                yield reply
        finally:
            del self._waiting[id]
            if not ended and not self.broken:
                self._write(Drop(id))

    def close(self) -> None:
        """Close the connection."""
        self._reading.cancel()
        self._writer.close()

    def _write(self, message: Ask | Drop) -> None:
        if self.broken:
            raise Lost("the connection to the replica broke")
        self._writer.write(frames.encode(message))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while (body := await frames.receive(reader)) is not None:
                reply = REPLY.decode(body)
                if (replies := self._waiting.get(reply.id)) is not None:
                    replies.put_nowait(reply)
        except OSError:
            pass  # it broke, as at the end of the stream
        finally:
            self.broken = True
            self._writer.close()
            for replies in self._waiting.values():
                replies.put_nowait(None)


# --- the side of an engine replica

Answer = Callable[[Ask], AsyncIterator[Reply]]


class Listener:
    """Listens on a free port. Only who knows ``secret`` is answered."""

    def __init__(self, answer: Answer) -> None:
        self.secret = secrets.token_urlsafe(32)
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._visits: set[asyncio.Task[None]] = set()

    async def open(self, host: str) -> int:
        """Listen on an address, and return the port."""
        self._server = await asyncio.start_server(self._visit, host, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Close every connection; what runs is stopped."""
        if self._server is not None:
            self._server.close()
        for visit in list(self._visits):
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer an ingress until the connection ends; what then still runs is stopped."""
        task = asyncio.current_task()
        assert task is not None
        self._visits.add(task)
        answering: dict[int, asyncio.Task[None]] = {}
        try:
            prompt(writer)
            if not await self._is_known(reader):
                return
            while (body := await frames.receive(reader)) is not None:
                match QUESTION.decode(body):
                    case Ask() as ask:
                        answering[ask.id] = begun = asyncio.create_task(self._reply(ask, writer))
                        begun.add_done_callback(lambda done, id=ask.id: answering.pop(id, None))  # type: ignore[misc]
                    case Drop(id=id) if id in answering:
                        answering[id].cancel()
        except (OSError, asyncio.CancelledError):
            pass  # the ingress or this replica ends
        finally:
            for one in answering.values():
                one.cancel()
            self._visits.discard(task)
            writer.close()

    async def _is_known(self, reader: asyncio.StreamReader) -> bool:
        """Return whether who has connected knocks with the secret."""
        try:
            async with asyncio.timeout(KNOCK_S):
                body = await frames.receive(reader, MAX_KNOCK_BYTES)
            knock = QUESTION.decode(body) if body is not None else None
        except (TimeoutError, msgspec.MsgspecError):  # a stranger
            return False
        return isinstance(knock, Knock) and hmac.compare_digest(knock.secret, self.secret)

    async def _reply(self, ask: Ask, writer: asyncio.StreamWriter) -> None:
        try:
            async for reply in self._answer(ask):
                writer.write(frames.encode(reply))
                await writer.drain()  # a slow reader gets fewer snapshots: only the latest one waits
        except OSError:
            pass  # the ingress has gone
        except Exception as error:  # without an answer the ingress would wait
            log.error("answer_failed", fault=type(error).__name__)
            message = f"the engine replica failed with {type(error).__name__}"
            writer.write(frames.encode(Declined(ask.id, "internal", message, 0)))
