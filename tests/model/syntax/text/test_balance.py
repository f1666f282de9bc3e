"""The text after a gap tells which brackets its fill leaves open."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax import language_for
from lacuna_model.syntax.text.balance import scan_left, sides_of
from lacuna_model.syntax.text.scan import Bracket

DATA = Path(__file__).parents[3] / "data" / "syntax"
# Files in which every block is indented. C++ is missing: the body of a namespace often is not.
FILES = ("ledger.py", "queue.js", "shapes.ts", "cache.go", "Account.java", "stack.rs", "table.c")


def lines(text: bytes) -> list[tuple[int, int]]:
    """Every line that is not blank, with its line break."""
    return [match.span() for match in re.finditer(rb"(?m)^[ \t]*\S.*\n", text)]


def closers(stack: Sequence[Bracket]) -> list[bytes]:
    return [bracket.closer for bracket in stack]


@pytest.mark.parametrize("name", FILES)
def test_the_brackets_that_a_removed_line_opens_are_known_from_the_lines_after_it(name: str) -> None:
    text = (DATA / name).read_bytes()
    language = language_for(name)
    assert language is not None
    asked = lines(text)
    right = 0
    for start, end in asked:
        target = sides_of(text[:start], text[end:], language.lexicon).target
        right += closers(target.stack) == closers(scan_left(text[:end], language.lexicon).stack)
    assert right / len(asked) > 0.9


def test_a_bracket_ends_before_the_next_statement() -> None:
    first, second = b"def f():\n    x = [\n        1,\n", b"\n            y = x\n            assert y\n\n"
    assert sides_of(first, second, require("python").lexicon).target.stack == ()


def test_a_bracket_is_closed_by_the_closer_in_its_column_where_another_one_has_none() -> None:
    left = b"a {\n  b {\n    c {\n      d(\n"
    (target, *_) = sides_of(left, b"\n    }\n  }\n", require("javascript").lexicon).targets
    assert closers(target.stack) == [b"}", b"}", b"}"]
