"""The messages between an ingress and an engine replica.

A frame is as between the service and its worker (``wire.frames``). The ingress knocks, and then asks; each question has
an ``id`` of its connection, and its replies have the same one, up to the one that ends it.
"""

import asyncio
import socket
import sys

import msgspec

from lacuna_model.core.params import InfillResult, Snapshot
from lacuna_server.wire.frames import LENGTH, Frame, Submission
from lacuna_server.wire.protocol import ErrorCode, Status
from lacuna_server.worker.tickets import Waiting

# A replica whose machine has gone without a word is given up after so long.
SILENCE_S = 5

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
    """What an engine replica reports of itself; ``first_snapshot_s`` is the recent mean of the time to a first step."""

    replica: str
    statuses: dict[str, Status]
    restarts: int
    first_snapshot_s: float

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
encode = msgspec.msgpack.encode


def framed(message: Question | Reply) -> bytes:
    """Return the frame of a message."""
    body = encode(message)
    return LENGTH.pack(len(body)) + body


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
