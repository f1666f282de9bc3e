"""How ingresses ask engine replicas: the messages, both ends of a connection, and the load of each replica.

Each question has a TCP connection of its own, which ends with its answer, or where the ingress leaves. Ray says which
replica and at which address; the questions and answers themselves go past Ray, because a call of an actor costs some
milliseconds of CPU on both sides, and a request needs several. A frame is as between the service and its worker
(``wire.frames``). The ingress knocks, and then asks.
"""

import asyncio
import contextlib
import hmac
import secrets
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import NamedTuple

import msgspec
import structlog

from lacuna_model.core.params import InfillResult, Snapshot
from lacuna_server.wire import frames
from lacuna_server.wire.frames import Frame, Submission
from lacuna_server.wire.protocol import Error, Progress, Status
from lacuna_server.worker.scheduler import Finished

log = structlog.get_logger(__name__)

CONNECT_S = 2.0
# A replica whose machine has gone without a word is given up after so long.
SILENCE_S = 5
# So long a replica that could not be reached comes last; by then Ray Serve knows whether it is dead.
LOST_S = 15.0
KNOCK_S = 5.0
MAX_KNOCK_BYTES = 1024
BACKLOG = 1024

# --- from the ingress


class Knock(Frame, frozen=True):
    """The first message: proves with the replica's secret that it comes from an ingress."""

    secret: str


class Ask(Frame, frozen=True):
    """Fill a request with a model; its session names the user, too."""

    model: str
    submission: Submission


# --- from the replica


class Shown(Frame, frozen=True):
    """Shows the fills after a step."""

    snapshot: Snapshot


class Answered(Frame, frozen=True):
    """Ends the question with its result, and the report on it."""

    result: InfillResult
    finished: Finished


Reply = Progress | Shown | Answered | Error

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


KNOCK = msgspec.msgpack.Decoder(Knock)
ASK = msgspec.msgpack.Decoder(Ask)
REPLY: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


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

    @contextlib.contextmanager
    def one_more(self, replica: str) -> Iterator[None]:
        """Count a request that this ingress sends to a replica, until it ends."""
        self._own[replica] += 1
        try:
            yield
        finally:
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


def keep_alive(writer: asyncio.StreamWriter) -> None:
    """Notice within ``SILENCE_S`` seconds that the other machine has gone."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, SILENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE_S * 1000)


async def ask(where: ReplicaAddress, question: Ask) -> AsyncGenerator[Reply]:
    """Ask a replica, and yield the replies, up to the one that ends it. Leaving the iterator stops the work on it.

    Raises Lost.
    """
    with LOADS.one_more(where.replica):
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(where.host, where.port)
        except (OSError, TimeoutError) as error:
            LOADS.lost(where.replica)
            raise Unreachable(f"{where.replica}: {error}") from None
        LOADS.found(where.replica)
        with contextlib.closing(writer):
            try:
                keep_alive(writer)
                writer.write(frames.encode(Knock(where.secret)) + frames.encode(question))
                while (body := await frames.receive(reader)) is not None:
                    reply = REPLY.decode(body)
                    yield reply
                    if isinstance(reply, Answered | Error):
                        return
                raise ConnectionError("it was closed")
            except OSError as error:
                LOADS.lost(where.replica)
                raise Lost(f"the connection to the replica broke: {error}") from None


# --- the side of an engine replica


class Listener:
    """Listens on a free port. Only who knows ``secret`` is answered."""

    def __init__(self, answer: Callable[[Ask], AsyncGenerator[Reply]]) -> None:
        self.secret = secrets.token_urlsafe(32)
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._visits: set[asyncio.Task[None]] = set()

    async def open(self, host: str) -> int:
        """Listen on an address, and return the port."""
        self._server = await asyncio.start_server(self._visit, host, 0, backlog=BACKLOG)
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
        """Answer the question of an ingress, which knocks with the secret, unless it leaves before."""
        task = asyncio.current_task()
        assert task is not None
        self._visits.add(task)
        task.add_done_callback(self._visits.discard)
        with contextlib.closing(writer), contextlib.suppress(OSError, msgspec.MsgspecError, asyncio.CancelledError):
            keep_alive(writer)
            async with asyncio.timeout(KNOCK_S):
                knock = await frames.receive(reader, MAX_KNOCK_BYTES)
            if not hmac.compare_digest(KNOCK.decode(knock or b"").secret.encode(), self.secret.encode()):
                return  # a stranger
            if (body := await frames.receive(reader)) is not None:
                work = asyncio.create_task(self._reply(body, writer)), asyncio.create_task(reader.read(1))
                try:
                    await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for one in work:
                        one.cancel()
                    await asyncio.gather(*work, return_exceptions=True)

    async def _reply(self, body: bytes, writer: asyncio.StreamWriter) -> None:
        try:
            async with contextlib.aclosing(self._answer(ASK.decode(body))) as replies:
                async for reply in replies:
                    writer.write(frames.encode(reply))
                    await writer.drain()  # a slow reader gets fewer snapshots: only the latest one waits
        except OSError:
            pass  # the ingress has gone
        except Exception as error:  # without an answer the ingress would wait
            log.error("answer_failed", fault=type(error).__name__)
            told = Error("internal", f"the engine replica failed with {type(error).__name__}")
            writer.write(frames.encode(told))
