import tracemalloc

import msgspec
import pytest

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
