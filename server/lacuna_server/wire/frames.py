"""The frames between the server process and its model worker.

A frame is the length of its body (four bytes, big-endian) and the body: one message in MessagePack.
"""

import asyncio
import struct
from typing import BinaryIO

import msgspec

from lacuna_model.core.params import InfillRequest, InfillResult, Snapshot
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import ErrorCode

LENGTH = struct.Struct(">I")
# The exit code of a worker that ran out of memory.
NO_MEMORY = 71
# Far more than a request, of a text of 2 MiB with snippets, or its result.
MAX_BYTES = 256 * 1024 * 1024


class Frame(msgspec.Struct, frozen=True, tag=True):
    """The base of all frames: the body carries the name of its class."""


# --- to the worker


class Setup(Frame, frozen=True):
    """The first frame: the settings of the service, without its token."""

    config: ServerConfig


class Submission(msgspec.Struct, frozen=True):
    """A request on its way to a model.

    Those with the same ``session`` and ``document`` share cached context and never run at the same time: the newer one
    waits. ``snapshots`` asks for the fills after each step. ``preferred`` requests come before others and have a queue
    of their own size; while there are some, others have a quarter of the worker's time, and one place at it is for
    them. Without ``wait`` it is refused while the model is being loaded.
    """

    request: InfillRequest
    session: str
    document: str
    snapshots: bool = False
    wait: bool = True
    preferred: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The session and the document."""
        return self.session, self.document


class Start(Frame, frozen=True):
    """Fill a request."""

    id: int
    submission: Submission


class Stop(Frame, frozen=True):
    """Stop a request before its next step."""

    id: int


ToWorker = Setup | Start | Stop

# --- from the worker


class Loading(Frame, frozen=True):
    """Reports progress while the model is loaded: ``fraction`` (0..1) grows in coarse stages."""

    fraction: float
    detail: str


class Ready(Frame, frozen=True):
    """The engine is loaded; ``follows_edits`` and ``positions`` are those of :class:`.protocol.Status`."""

    model: str
    follows_edits: bool = False
    positions: int = 0


class Failed(Frame, frozen=True):
    """The engine cannot be loaded, and another attempt would not help."""

    message: str


class Stepped(Frame, frozen=True):
    """The worker took one denoising step; ``snapshot`` is None unless the request asked for snapshots."""

    id: int
    snapshot: Snapshot | None


class Ended(Frame, frozen=True):
    """A request has ended, after ``busy_s`` seconds of work and ``steps`` steps."""

    id: int
    busy_s: float
    steps: int


class Done(Ended, frozen=True):
    """A request has its result."""

    result: InfillResult


class Refused(Ended, frozen=True):
    """A request failed, because it is invalid or the engine failed."""

    code: ErrorCode
    message: str


class Stopped(Ended, frozen=True):
    """A request was stopped, as ``Stop`` asked."""


FromWorker = Loading | Ready | Failed | Stepped | Done | Refused | Stopped

TO_WORKER: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
FROM_WORKER: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)


def encode(message: msgspec.Struct) -> bytes:
    """Return the frame of a message."""
    body = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(body)) + body


def read(stream: BinaryIO) -> bytes | None:
    """Return the body of the next frame; None at the end of the stream or where the frame is cut off."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    body = stream.read(size)
    return body if len(body) == size else None


async def receive(stream: asyncio.StreamReader, most: int = MAX_BYTES) -> bytes | None:
    """Return the body of the next frame; None at the end of the stream or where the frame is cut off.

    A frame of more than ``most`` bytes ends the stream, too, before any of it is read: whoever connects may announce
    four gigabytes.
    """
    try:
        (size,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
        if size > most:
            return None
        return await stream.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return None
