"""A suggestion stands at a place of a document, and moves with its edits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_lsp.suggest.suggestion import NEAR, Suggestion, distinct
from lacuna_server.wire.protocol import Edit


class Page:
    """A document with a suggestion, a cursor, and an editor that tells both of its edits."""

    def __init__(self, before: str, text: str, after: str = "\n") -> None:
        self.text, self.cursor = (before + after).encode(), len(before.encode())
        self.suggestion = Suggestion(Edit(self.cursor, self.cursor, ""), b"", several=False)
        self.suggestion.keep((text,))

    def replace(self, start: int, end: int, text: str) -> None:
        new = text.encode()
        self.text = self.text[:start] + new + self.text[end:]
        self.suggestion.follow(Edit(start, end, text))

    def type(self, text: str, closing: str = "") -> None:
        self.replace(self.cursor, self.cursor, text + closing)
        self.cursor += len(text.encode())

    def erase(self, count: int) -> None:
        self.cursor -= count
        self.replace(self.cursor, self.cursor + count, "")

    @property
    def rest(self) -> list[str]:
        return [text for _, text in self.suggestion.rests(Edit(self.cursor, self.cursor, ""))]


@given(before=st.text(max_size=20), text=st.text(min_size=1, max_size=20), after=st.text(max_size=5), data=st.data())
def test_typing_a_part_of_a_suggestion_leaves_the_rest(before: str, text: str, after: str, data: st.DataObject) -> None:
    page = Page(before, text, after)
    size = data.draw(st.integers(0, len(text) - 1))
    for character in text[:size]:
        page.type(character)
    assert page.rest == [text[size:]]
    page.type("#")
    page.erase(1)
    assert page.rest == [text[size:]]


@pytest.mark.parametrize(
    ("typed", "closing", "rest"),
    [
        ("", "", ["total(a, b)"]),
        ("to", "", ["tal(a, b)"]),
        ("total(", ")", ["a, b"]),
        ("total(a, b", ")", []),
        ("total(a, b)", "", []),
        ("su", "", []),
        ("to", " more", []),
        ("to", "))))))", []),
    ],
)
def test_a_suggestion_goes_on_only_where_the_typed_text_agrees(typed: str, closing: str, rest: list[str]) -> None:
    page = Page("x = ", "total(a, b)")
    page.type(typed, closing)
    assert page.rest == rest


def test_brackets_that_an_editor_closes_in_edits_of_their_own_are_no_text_of_the_user() -> None:
    page = Page("x = ", "f(a[0])")
    page.type("f(")
    page.replace(page.cursor, page.cursor, ")")
    page.type("a[", "]")
    assert page.rest == ["0"]


def test_an_edit_far_above_moves_a_suggestion_and_one_below_leaves_it() -> None:
    page = Page("é" * NEAR + "x = ", "total", "\n" + "b" * 2 * NEAR)
    page.replace(0, 4, "one more line\n")
    page.cursor += 10
    page.replace(page.cursor + NEAR, page.cursor + NEAR + 3, "")
    page.type("to")
    assert page.rest == ["tal"]
    assert page.text[: page.cursor].endswith(b"x = to")


def test_a_suggestion_that_the_user_has_left_far_behind_is_not_followed_any_more() -> None:
    page = Page("x = ", "total")
    page.type("total" + "y" * 2 * NEAR)
    page.erase(2 * NEAR + 3)
    assert page.rest == []


@pytest.mark.parametrize(
    ("fill", "before", "expected"),
    [
        ("a)", "f(", ["a)"]),
        ("a = 1", "a = 1\n", []),
        ("a = 1\nb = 2", "a = 1\n", []),
        ("a = 1\r\nb = 2", "a = 1\r\n", []),
        ("= 1", "a = 1\na ", []),
        ("}", "  }\n", ["}"]),
        ("if err != nil {", "func f() {\n\terr := f()\n\t", ["if err != nil {"]),
        ("   ", "x =", []),
    ],
)
def test_a_text_whose_first_line_repeats_the_line_above_says_nothing(
    fill: str, before: str, expected: list[str]
) -> None:
    assert [text for _, text in distinct([(0, fill)], before)] == expected
