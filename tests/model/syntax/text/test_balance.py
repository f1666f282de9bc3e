"""The text after a gap tells which brackets its fill leaves open."""

import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax import language_for
from lacuna_model.syntax.text.balance import Balance, scan_left
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
def test_the_brackets_that_removed_lines_open_are_known_from_the_lines_after_them(name: str) -> None:
    text = (DATA / name).read_bytes()
    language = language_for(name)
    assert language is not None
    rng = random.Random(name)
    right = asked = 0
    for _ in range(60):
        gaps = sorted(rng.sample(lines(text), 3))
        balance = Balance(text, gaps, language.lexicon)
        for index, (_, end) in enumerate(gaps):
            found = closers(balance.sides(index).target.stack)
            right += found == closers(scan_left(text[:end], language.lexicon).stack)
            asked += 1
    assert right / asked > 0.9


def test_a_bracket_ends_before_the_next_statement() -> None:
    first, second = b"def f():\n    x = [\n        1,\n", b"\n            y = x\n            assert y\n"
    text = first + second + b"\n"
    gaps = [(len(first), len(first)), (len(text) - 1, len(text) - 1)]
    assert Balance(text, gaps, require("python").lexicon).sides(0).target.stack == ()
