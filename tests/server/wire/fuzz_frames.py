"""Decodes frames that are nearly right: ``python -m tests.server.wire.fuzz_frames SECONDS SEED``.

A frame is a message, or is refused with the one error of its decoder. :mod:`tests.server.wire.test_fuzz_frames` runs
this under AddressSanitizer.
"""

import collections
import io
import json
import sys
import time
from collections.abc import Callable
from random import Random
from typing import Any, get_args

import msgspec

from lacuna_server.wire import frames, protocol
from lacuna_server.wire.protocol import ServiceError

LEAVES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**31, 2**63, -(2**63), 1.5),
    *("", "a", "\0", "\ud800", "é" * 100, b"", b"\xff"),
)
MAX_DEPTH = 3_000


def value(random: Random, depth: int = 0) -> Any:
    """Anything that JSON or MessagePack can hold."""
    kind = random.random()
    if depth > 4 or kind < 0.6:
        return random.choice(LEAVES)
    if kind < 0.8:
        return [value(random, depth + 1) for _ in range(random.randrange(4))]
    return {str(random.choice(LEAVES)): value(random, depth + 1) for _ in range(random.randrange(4))}


def deep(random: Random) -> bytes:
    """Lists or tables in each other, whose innermost one may be missing."""
    depth = random.randrange(1, MAX_DEPTH)
    return random.choice((b"[" * depth, b"[" * depth + b"]" * depth, b"\x91" * depth, b"\x81\xa1a" * depth + b"\xc0"))


def near(kind: type[msgspec.Struct], random: Random) -> dict[str, Any]:
    """The fields of a message, most of them of the right type."""
    (schema,), parts = msgspec.json.schema_components([kind])
    found: dict[str, Any] = {"type": str(kind.__struct_config__.tag)}
    for name, about in parts[schema["$ref"].rpartition("/")[2]]["properties"].items():
        if name == "type" or random.random() < 0.2:
            continue
        right = {"string": "a", "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
        found[name] = right.get(about.get("type", ""), {}) if random.random() < 0.8 else value(random)
    return found


def damaged(frame: bytes, random: Random) -> bytes:
    """The frame cut, longer, or with some other bytes; often unchanged."""
    data = bytearray(frame)
    for _ in range(random.choice((0, 0, 1, 2, 8))):
        if data:
            data[random.randrange(len(data))] = random.randrange(256)
    if random.random() < 0.2:
        del data[random.randrange(len(data) + 1) :]
    return bytes(data) + bytes(random.randrange(256) for _ in range(random.choice((0, 0, 0, 5))))


def frame(kinds: tuple[type[msgspec.Struct], ...], random: Random) -> bytes:
    """A frame in JSON or MessagePack."""
    if random.random() < 0.05:
        return deep(random)
    found = near(random.choice(kinds), random)
    try:
        packed = json.dumps(found).encode() if random.random() < 0.5 else msgspec.msgpack.encode(found)
    except (TypeError, UnicodeEncodeError, OverflowError):  # what only the other form can hold
        packed = msgspec.msgpack.encode(str(found).encode("utf-8", "replace"))
    return damaged(packed, random)


def case(random: Random) -> str:
    """Decode one frame; returns what became of it."""
    decoders: tuple[tuple[Any, Callable[[Any], object]], ...] = (
        (protocol.ClientMessage, protocol.decode_client),
        (protocol.ServerMessage, protocol.decode_server),
    )
    kinds, decode = random.choice(decoders)
    data = frame(get_args(kinds), random)
    given = data.decode("utf-8", "replace") if random.random() < 0.5 else data
    try:
        decode(given)
        said = "a message"
    except ServiceError as error:
        said = "refused" if error.code == "bad_message" else f"refused as {error.code}"
        assert isinstance(protocol.addressed(given), protocol.Addressed)
    inner = frame(get_args(frames.ToWorker) + get_args(frames.FromWorker), random)
    body = frames.read(io.BytesIO(frames.LENGTH.pack(len(inner)) + inner[: random.choice((len(inner), 3))]))
    for decoder in (frames.TO_WORKER, frames.FROM_WORKER):
        try:
            decoder.decode(body or b"")
        except (ValueError, RecursionError):  # of text that is no UTF-8, msgspec raises UnicodeDecodeError
            continue
    return said


def main(seconds: float, seed: int) -> None:
    until = time.monotonic() + seconds
    counts: collections.Counter[str] = collections.Counter()
    while time.monotonic() < until:
        seed += 1
        counts[case(Random(seed))] += 1
    print(dict(counts))


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
