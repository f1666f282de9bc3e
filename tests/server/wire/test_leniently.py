import json
import tracemalloc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_server.wire import leniently


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
    assert leniently.decode(data, Fields).text == whole


def test_integers_may_be_written_as_floats() -> None:
    assert leniently.decode(b'{"count": 4.0}', Fields).count == 4
    for wrong in (b'{"count": 4.5}', b'{"count": "4"}', b'{"count": 1e300}'):
        with pytest.raises(msgspec.ValidationError):
            leniently.decode(wrong, Fields)


@pytest.mark.parametrize("half", ["", '"\\ud83d",'])
def test_what_the_type_does_not_name_takes_no_memory(half: str) -> None:
    data = f'{{"text": "x", "other": [{half}{"[]," * 1_000_000}1]}}'.encode()
    tracemalloc.start()
    try:
        assert leniently.decode(data, Fields).text == "x"
        assert tracemalloc.get_traced_memory()[1] < 3 * len(data)
    finally:
        tracemalloc.stop()
