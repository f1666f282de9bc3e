import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import (
    AnswerChat,
    ChatMessage,
    EditLines,
    FillGaps,
    InfillRequest,
    Region,
    Snippet,
    with_fills,
)
from lacuna_model.core.regions import (
    MAX_CHARACTERS,
    MAX_TEXTS,
    at_cursor,
    at_marker,
    check,
    check_beside,
    is_indented,
    marked,
    newlines,
    text_for,
)

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, list[Region]]:
    """A text and good regions in it."""
    texts_between = draw(st.lists(ANY_TEXT, min_size=3, max_size=13))
    regions, at = [], 0
    for i, piece in enumerate(texts_between):
        end = at + len(piece.encode())
        if i % 2:
            regions.append(Region(at, end))
        at = end
    return "".join(texts_between), regions


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        ([], "no region"),
        ([Region(3, 2)], "outside"),
        ([Region(-1, 2)], "outside"),
        ([Region(2, 99)], "outside the text of 12 bytes"),
        ([Region(0, 4), Region(3, 5)], "3..5 overlaps the one before or is out of order"),
        ([Region(4, 8), Region(0, 1)], "out of order"),
        ([Region(5, 7)], "offset 5 lies within a character"),
        ([Region(3, 6)], "offset 6 lies within a character"),
        ([Region(0, 1, max_tokens=0)], "may hold no token"),
    ],
)
def test_bad_regions_are_refused(regions: list[Region], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        check(regions, "abcd\U0001f600efgh".encode())


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("def f():\n", "    return 1\n", "\n"),
        ("def f():\r\n", "\treturn 1\r\n", "\r\n"),
        ("def f():\n    ", "    return 1\n", ""),  # the line has begun
        ("def f():\n", "\n    return 1\n", ""),  # the text has the newline
        ("def f():\n", "    \n    return 1\n", ""),  # the indentation may belong to the line of the fill
        ("import os\n", "def f():\n", ""),  # "async " could come before it
        ("", "    return 1\n", ""),
    ],
)
def test_a_fill_on_lines_of_its_own_ends_with_a_newline(before: str, after: str, line: str) -> None:
    at = len(before)
    text = (before + after).encode()
    assert newlines(text, [Region(at, at)]) == [line]
    for rule in ({"single_line": True}, {"regex": "a"}, {"json_schema": "{}"}, {"must_not_contain": ("\n",)}):
        assert newlines(text, [Region(at, at, **rule)]) == [""]  # type: ignore[arg-type]


@settings(deadline=None)
@given(documents(), st.data())
def test_filling_group_by_group_equals_filling_at_once(document: tuple[str, list[Region]], data: st.DataObject) -> None:
    text, regions = document[0].encode(), document[1]
    cut = data.draw(st.integers(0, len(regions)))
    fills = [data.draw(ANY_TEXT) for _ in regions]
    check(regions, text)
    current, moved = text_for(text, regions, fills, range(cut, len(regions)))
    assert with_fills(current, moved, fills[cut:]) == with_fills(text, regions, fills)
    # The text in later regions is removed; a constraint reads it with these regions filled.
    for later, seen in (((), [""] * (len(regions) - cut)), (fills[cut:], fills[cut:])):
        current, moved = text_for(text, regions, fills, range(cut), later)
        assert with_fills(current, moved, fills[:cut]) == with_fills(text, regions, [*fills[:cut], *seen])


@pytest.mark.parametrize(
    ("tail", "max_lines", "limit"),
    [("", 0, 0), (" \t", 0, 0), ("", 5, 5), (")", 0, 1), (" x", 5, 1), ("", 1, 1)],
)
def test_a_fill_at_a_cursor_has_one_line_if_text_follows_in_the_line(tail: str, max_lines: int, limit: int) -> None:
    region = at_cursor(3, tail, 8, max_lines)
    assert (region.start, region.end, region.max_tokens) == (3, 3, 8)
    assert (region.max_lines, region.single_line) == (limit, limit == 1)


@pytest.mark.parametrize(
    "request_",
    [
        InfillRequest("", (Region(0, 0),), snippets=(Snippet("a.py", "x" * MAX_CHARACTERS),)),
        InfillRequest("", (Region(0, 0),), snippets=(Snippet("a", "b"),) * MAX_TEXTS),
        InfillRequest("", (Region(0, 0, must_contain=("a",) * MAX_TEXTS, must_not_contain=("b",)),)),
        InfillRequest("", (Region(0, 0, regex="b"),), EditLines("a" * MAX_CHARACTERS)),
        InfillRequest("", (Region(0, 0, json_schema="a" * MAX_CHARACTERS, regex="b"),)),
        InfillRequest("", (Region(0, 0),), task=AnswerChat((ChatMessage("user", "a" * MAX_CHARACTERS + "b"),))),
    ],
)
def test_what_comes_beside_a_document_is_limited(request_: InfillRequest) -> None:
    """A stranger who sends more would keep the model process from everybody else for half a minute."""
    with pytest.raises(RequestError, match="beside the document") as refused:
        check_beside(request_)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("rule", ["regex", "json_schema", "must_contain", "must_not_contain"])
def test_an_open_fill_takes_no_rule_that_it_may_end_before(rule: str) -> None:
    region = msgspec.structs.replace(Region(0, 0), **{rule: ("a",) if rule.startswith("must") else "true"})
    check_beside(InfillRequest("", (region,)))
    with pytest.raises(RequestError, match=f"keeps no {rule};"):
        check_beside(InfillRequest("", (region,), FillGaps(open=True)))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("def f(x):\n    ", "\n\nf(1)\n", True),
        ("def f(x):\n    y = x\n    ", "\n", True),
        ("def f(x):\n    if x:\n    ", "\n    return y\n", False),
        ("def f(x):\n    y = f(\n    ", "\n", False),
        ("def f(x):\n    y = x\n  ", "\n", False),
        ("class A:\n    def f(self):\n        pass\n    ", "\n", True),
        ("func f() {\n\t", "\n}\n", True),
        ("a:\n  - b\n  ", "\n", True),
        ("x = ", "\n", False),
        ("x = 1\n", "\n", False),
    ],
    ids=["block", "next-line", "header", "open", "no-level", "outer-level", "tabs", "list", "in-line", "edge"],
)
def test_blanks_before_a_gap_are_the_indentation_of_its_line(before: str, after: str, expected: bool) -> None:
    assert is_indented(before.encode(), after.encode()) == expected


def test_a_marker_that_is_followed_by_text_on_its_line_gets_one_line() -> None:
    text = b"f(<<fill>>, <<fill>>)\n<<fill>> \r\nx = <<fill>>"
    assert [region.single_line for region in marked(text)] == [True, True, False, False]


def test_a_position_in_a_marker_or_beside_it_is_that_marker() -> None:
    text = b"f(<<fill>>, b)"
    assert [at_marker(text, at, 7) for at in (1, 11)] == [None, None]
    assert {at_marker(text, at, 7) for at in (2, 5, 10)} == {Region(2, 10, 7, single_line=True)}
