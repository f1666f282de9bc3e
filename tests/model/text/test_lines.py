import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.text.lines import (
    first_of,
    first_written,
    last_written,
    line_starts,
    lines_down,
    lines_of,
    lines_up,
    newline_of,
    splice,
    unmatched,
    well_formed,
    within_character,
)


def test_brackets_that_stay_open_or_close_nothing_are_found() -> None:
    assert unmatched("f(a[1])") == []
    assert unmatched([")", "x", "("]) == [")", "("]
    assert unmatched("(]") == ["(", "]"]
    assert unmatched("if (x) { y[") == ["{", "["]


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


LINES = st.text(alphabet="ab \t\r\n", max_size=20)


@given(st.text(alphabet="a\r\n\f\v\x1c\x85\u2028", max_size=20))
def test_lines_end_where_those_of_bytes_do(text: str) -> None:
    assert [line.encode() for line in lines_of(text, keepends=True)] == text.encode().splitlines(keepends=True)
    assert [line.encode() for line in lines_of(text)] == text.encode().splitlines()


@given(LINES)
def test_lines_begin_behind_every_kind_of_end(text: str) -> None:
    starts = line_starts(text)
    pieces = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    assert pieces == [*text.splitlines(keepends=True), *([""] if not text or text[-1] in "\r\n" else [])]
    assert line_starts(text.encode()) == starts
    assert first_of(text) == pieces[0].rstrip("\r\n")


@given(LINES)
def test_lines_are_read_downwards_and_upwards(text: str) -> None:
    lines = text.split("\n")
    assert list(lines_down(text)) == lines
    assert list(lines_up(text, len(text))) == lines[::-1]
    written = [line for line in lines if line.strip()]
    assert (first_written(text), last_written(text)) == ((written[0], written[-1]) if written else ("", ""))


@pytest.mark.parametrize(
    ("text", "newline"), [("a\r\nb\n", "\r\n"), ("a\nb\r\n", "\n"), ("a\rb", "\r"), ("a", "\n"), ("", "\n")]
)
def test_the_line_ending_is_that_of_the_first_line(text: str, newline: str) -> None:
    assert newline_of(text) == newline


@given(value=st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_what_is_well_formed_stays(value: object) -> None:
    assert well_formed(value) == value


@given(text=st.text(st.sampled_from("aé😀\ud83d\ude00\udce9")))
def test_every_text_becomes_one_that_can_be_encoded(text: str) -> None:
    good = well_formed(text)
    good.encode()
    assert well_formed({text: (text, [text])}) == {good: (good, [good])}


def test_halves_that_belong_together_are_joined_and_others_replaced() -> None:
    assert well_formed("a\ud83d\ude00b\ud83dc\udce9") == "a😀b\ufffdc\ufffd"


def test_offsets_within_characters_are_told_from_those_between() -> None:
    data = "aé😀".encode()
    assert [place for place in range(len(data) + 1) if within_character(data, place)] == [2, 4, 5, 6]
