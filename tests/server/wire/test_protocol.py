import json
import tracemalloc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_server.wire import protocol
from lacuna_server.wire.protocol import Addressed, ServiceError


@pytest.mark.parametrize(
    ("frame", "name", "other"),
    [
        (b"\xc1", "msgpack", "json"),
        (b"\x91" * 5000, "msgpack", "json"),
        (b"\x80", "msgpack", "json"),
        ("{", "json", "msgpack"),
        ("[" * 100_000, "json", "msgpack"),
        ("{}", "json", "msgpack"),
    ],
)
def test_a_frame_that_is_refused_names_its_own_format(frame: str | bytes, name: str, other: str) -> None:
    with pytest.raises(ServiceError) as caught:
        protocol.decode_client(frame)
    assert f"not a message of lacuna.v1.{name}: " in str(caught.value)
    assert other not in str(caught.value).lower()


@pytest.mark.parametrize("packed", [True, False])
def test_what_a_refused_frame_is_about_takes_no_memory(packed: bool) -> None:
    message = {"type": "change", "uri": "file:///a.py", "edits": [[]] * 1_000_000}
    frame = msgspec.msgpack.encode(message) if packed else msgspec.json.encode(message).decode()
    tracemalloc.start()
    try:
        with pytest.raises(ServiceError):
            protocol.decode_client(frame)
        assert protocol.addressed(frame) == Addressed("change", "", "file:///a.py")
        assert tracemalloc.get_traced_memory()[1] < 4 * len(frame)
    finally:
        tracemalloc.stop()


class Fields(msgspec.Struct):
    text: str = ""
    count: int | None = None


# Texts in which halves of pairs, whole pairs, and what looks like their escapes stand side by side.
PIECES = st.lists(st.sampled_from(["\ud83d", "\ude00", "\U0001f600", "\\", "u", "ud83d", "d83d", '"', "\n", "é"]))


@given(PIECES)
def test_halves_of_surrogate_pairs_are_replaced_wherever_they_stand(pieces: list[str]) -> None:
    text = "".join(pieces)
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    data = json.dumps({"other": [text], text: 1, "text": text}).encode()
    assert protocol.decode_leniently(data, Fields).text == whole


@pytest.mark.parametrize("half", ["", '"\\ud83d",'])
def test_what_the_type_does_not_name_takes_no_memory(half: str) -> None:
    data = f'{{"text": "x", "other": [{half}{"[]," * 1_000_000}1]}}'.encode()
    tracemalloc.start()
    try:
        assert protocol.decode_leniently(data, Fields).text == "x"
        assert tracemalloc.get_traced_memory()[1] < 3 * len(data)
    finally:
        tracemalloc.stop()
