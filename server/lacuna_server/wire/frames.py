"""The frames between the server process and its model worker: a length, then one message in MessagePack."""

import asyncio
import struct
from typing import BinaryIO

import msgspec

from lacuna_model.core.params import InfillRequest, InfillResult, Snapshot
from lacuna_server.wire.protocol import ErrorCode

LENGTH = struct.Struct(">I")


class Frame(msgspec.Struct, frozen=True, tag=True):
    """What every frame has in common: its name."""


# --- to the worker


class Setup(Frame, frozen=True):
    """The first frame: the factory of the engine (``module:function``) and what it is called with."""

    engine: str
    model: str
    threads: int
    device: str
    cache_bytes: int
    log_code: bool


class Start(Frame, frozen=True):
    """Fill a request; ``document`` names the context that is kept for later ones."""

    id: int
    document: str
    request: InfillRequest
    snapshots: bool


class Stop(Frame, frozen=True):
    """Take no further step of a request."""

    id: int


ToWorker = Setup | Start | Stop

# --- from the worker


class Loading(Frame, frozen=True):
    """How far the model is loaded, 0..1, in coarse stages."""

    fraction: float
    detail: str


class Ready(Frame, frozen=True):
    """The engine is there."""

    model: str


class Failed(Frame, frozen=True):
    """The engine cannot be had, and trying again would not help."""

    message: str


class Stepped(Frame, frozen=True):
    """One denoising step was taken; ``snapshot`` is there where it was asked for."""

    id: int
    snapshot: Snapshot | None


class Done(Frame, frozen=True):
    """The end of a request, after ``busy_s`` of work and ``steps`` steps."""

    id: int
    busy_s: float
    steps: int
    result: InfillResult


class Refused(Frame, frozen=True):
    """A request that cannot be served."""

    id: int
    busy_s: float
    steps: int
    code: ErrorCode
    message: str


class Stopped(Frame, frozen=True):
    """A request was given up as asked."""

    id: int
    busy_s: float
    steps: int


Ending = Done | Refused | Stopped
FromWorker = Loading | Ready | Failed | Stepped | Ending

TO_WORKER: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
FROM_WORKER: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)


def encode(message: ToWorker | FromWorker) -> bytes:
    """The frame of a message."""
    body = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(body)) + body


def read(stream: BinaryIO) -> bytes | None:
    """The body of the next frame, None at the end of the stream (a frame that is cut off included)."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    body = stream.read(size)
    return body if len(body) == size else None


async def receive(stream: asyncio.StreamReader) -> bytes | None:
    """The body of the next frame, None at the end of the stream (a frame that is cut off included)."""
    try:
        (size,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
        return await stream.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return None
