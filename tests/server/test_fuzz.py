"""Frames that no client of this project would send. The service answers with typed errors and stays healthy."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from lacuna_server.wire import protocol
from lacuna_server.wire.protocol import JSON, Error, GetStatus, Hello, Status, Welcome

from .live_service import infill, live, opened

URIS = st.sampled_from(["a", "b", ""])
NUMBERS = st.integers(-2, 20) | st.integers()
REGIONS = st.fixed_dictionaries(
    {"start": NUMBERS, "end": NUMBERS}, optional={"max_tokens": st.integers(-1, 9), "single_line": st.booleans()}
)
EDITS = st.fixed_dictionaries({"start": NUMBERS, "end": NUMBERS, "text": st.text(max_size=5)})
FIELDS = {
    "id": st.sampled_from(["1", "2", ""]),
    "uri": URIS,
    "text": st.text(max_size=20),
    "version": st.integers(-1, 3),
    "edits": st.lists(EDITS, max_size=3),
    "regions": st.lists(REGIONS, max_size=3),
    "options": st.fixed_dictionaries({}, optional={"deadline_ms": NUMBERS, "steps": NUMBERS, "syntax": st.booleans()}),
    "task": st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("fill"), "candidates": NUMBERS, "due_ms": NUMBERS, "open": st.booleans()}
        ),
        st.fixed_dictionaries({"type": st.sampled_from(["edit", "other"]), "instruction": st.text(max_size=5)}),
    ),
    "kind": st.sampled_from(["shown", "accepted", "rejected", "liked"]),
    "accepted_bytes": NUMBERS,
    "snapshots": st.booleans(),
    "supersede": st.booleans(),
    "session": st.text(max_size=5),
}
TYPES = {
    "hello": ["session"],
    "open": ["uri", "text", "version"],
    "change": ["uri", "version", "edits"],
    "close": ["uri"],
    "infill": ["id", "uri", "version", "regions", "edits", "options", "task", "snapshots", "supersede"],
    "cancel": ["id"],
    "feedback": ["id", "kind", "accepted_bytes"],
    "get_status": [],
    "unknown": ["id"],
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=9,
)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, object]:
    """A message with fields of the right types. Sometimes a field is missing, unexpected or of any other type."""
    name = draw(st.sampled_from(list(TYPES)))
    message: dict[str, object] = {"type": name, **{field: draw(FIELDS[field]) for field in TYPES[name]}}
    if draw(st.integers(0, 3)) == 0:
        message[draw(st.sampled_from(list(FIELDS)))] = draw(ANYTHING)
    if draw(st.integers(0, 7)) == 0:
        message.pop(draw(st.sampled_from(list(message))))
    return message


EXAMPLES = [opened("a"), infill("1", "a"), GetStatus()]


def encoded(message: object, binary: bool) -> str | bytes:
    try:
        return msgspec.msgpack.encode(message) if binary else msgspec.json.encode(message).decode()
    except OverflowError:  # MessagePack has no integers of more than 64 bits
        return msgspec.json.encode(str(message)).decode()


FRAMES = st.one_of(
    st.binary(max_size=50),
    st.text(max_size=50),
    st.builds(encoded, ANYTHING, st.booleans()),
    *[st.builds(encoded, messages(), st.booleans())] * 8,
    st.builds(encoded, st.sampled_from(EXAMPLES), st.booleans()),
    st.builds(lambda text: "[" * text + "]" * text, st.integers(0, 100_000)),
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a service in a separate thread, which runs during all examples."""
    found: list[str] = []
    started, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with live() as (_, address):
            found.append(address)
            started.set()
            await asyncio.to_thread(over.wait)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent / "scripted"))
        thread = threading.Thread(target=asyncio.run, args=(serve(),))
        thread.start()
        assert started.wait(30)
        yield found[0]
        over.set()
        thread.join()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(FRAMES, min_size=10, max_size=10), st.booleans())
def test_the_service_survives_a_thousand_random_frames(address: str, frames: list[str | bytes], greeted: bool) -> None:
    codes = set()
    with connect(f"ws://{address}/v1/ws", subprotocols=[Subprotocol(JSON)], proxy=None) as websocket:
        for frame in ([protocol.encode(Hello(), JSON)] if greeted else []) + frames:
            websocket.send(frame)
        # After any frames, the same connection continues. If there was no greeting yet, it begins with one.
        if not greeted:
            websocket.send(protocol.encode(Hello(), JSON))
        websocket.send(protocol.encode(opened("healthy"), JSON))
        websocket.send(protocol.encode(infill("healthy", "healthy"), JSON))
        while True:
            answer = protocol.decode_server(websocket.recv(timeout=30))
            if isinstance(answer, Error):
                codes.add(answer.code)
            elif isinstance(answer, protocol.Result) and answer.id == "healthy":
                break
    assert not codes & {"internal", "worker_crashed", "shutting_down"}
    with connect(f"ws://{address}/v1/ws", proxy=None) as websocket:
        websocket.send(protocol.encode(Hello(), JSON))
        websocket.send(protocol.encode(GetStatus(), JSON))
        assert isinstance(protocol.decode_server(websocket.recv(timeout=30)), Welcome)
        status = protocol.decode_server(websocket.recv(timeout=30))
        assert isinstance(status, Status)
        assert status.state == "ready"
