"""Frames that no client of this project would send. The service answers with typed errors and stays healthy."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from lacuna_model.core.params import DecodeOptions, EditLines, FillGaps, Region
from lacuna_server.wire import protocol
from lacuna_server.wire.protocol import JSON, Error, GetStatus, Hello, Status, Welcome

from .live_service import infill, live, opened

IDS, URIS, VERSIONS = st.sampled_from(["1", "2", ""]), st.sampled_from(["a", "b", ""]), st.integers(-1, 3)
NUMBERS = st.integers(-2, 20) | st.integers()
EDITS = st.lists(st.builds(protocol.Edit, NUMBERS, NUMBERS, st.text(max_size=5)), max_size=3)
REGIONS = st.lists(st.builds(Region, NUMBERS, NUMBERS, st.integers(-1, 9), single_line=st.booleans()), max_size=3)
TASKS = st.builds(FillGaps, NUMBERS, st.booleans(), NUMBERS) | st.builds(EditLines, st.text(max_size=5))
OPTIONS = st.builds(DecodeOptions, deadline_ms=NUMBERS, steps=NUMBERS, syntax=st.booleans())
VALID = st.one_of(
    st.builds(Hello, session=st.text(max_size=5)),
    st.builds(protocol.Open, URIS, st.text(max_size=20), VERSIONS),
    st.builds(protocol.Change, URIS, VERSIONS, EDITS),
    st.builds(protocol.Close, URIS),
    st.builds(
        *(protocol.Infill, IDS, URIS, VERSIONS, REGIONS, EDITS, TASKS, OPTIONS),
        snapshots=st.booleans(),
        supersede=st.booleans(),
    ),
    st.builds(protocol.Cancel, IDS),
    st.builds(protocol.Feedback, IDS, st.sampled_from(get_args(protocol.FeedbackKind)), accepted_bytes=NUMBERS),
    st.just(GetStatus()),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=9,
)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, object]:
    """A message. Sometimes a field is missing, unexpected or of any other type."""
    message: dict[str, object] = msgspec.to_builtins(draw(VALID))
    if draw(st.integers(0, 3)) == 0:
        message[draw(st.sampled_from(["id", "version", "liked", *message]))] = draw(ANYTHING)
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
    with pytest.MonkeyPatch.context() as patch, start_blocking_portal() as portal:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent / "scripted"))
        with portal.wrap_async_context_manager(live()) as (_, address):
            yield address


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
