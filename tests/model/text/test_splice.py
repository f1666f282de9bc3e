from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.text.lines import splice

Edit = tuple[int, int, bytes]


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, list[Edit]]:
    text = draw(st.binary(max_size=30))
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    spans = zip(places[::2], places[1::2], strict=False)
    return text, [(start, end, draw(st.binary(max_size=5))) for start, end in spans]


@given(edited())
def test_ranges_are_replaced_and_nothing_else(given_: tuple[bytes, list[Edit]]) -> None:
    text, edits = given_
    expected = text
    for start, end, new in reversed(edits):
        expected = expected[:start] + new + expected[end:]
    assert splice(text, edits) == expected
