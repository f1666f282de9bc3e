"""The patterns of a change, and what becomes of their places."""

import pytest

from lacuna_model.next_edit.changes import RecentChange, hunks, nearest
from lacuna_model.next_edit.patterns import Pattern, patterns
from lacuna_model.next_edit.places import places
from lacuna_model.next_edit.tokens import TokenizedText


def change(old: str, new: str) -> RecentChange:
    hunk = nearest(hunks(old, new), 0)
    assert hunk is not None
    return RecentChange(TokenizedText(old), TokenizedText(new), hunk)


def becomes(pattern: Pattern, text: str) -> list[str]:
    """The texts after the change at each place of the pattern."""
    return [text[: one.start] + one.text + text[one.end :] for one in places(pattern, TokenizedText(text))]


@pytest.mark.parametrize(
    ("old", "new", "elsewhere", "expected"),
    [
        ("f(a)\n", "g(a)\n", "x = f(b)\n", "x = g(b)\n"),
        ('assert "" != a.b\n', 'assert a.b != ""\n', 'assert "" != c.d\n', 'assert c.d != ""\n'),
        ("eq(w.text(), 'one two')\n", "eq('one two', w.text())\n", "eq(w.text(), 'three')\n",
         "eq('three', w.text())\n"),
        ("  if a:\n    b()\n", "  while a:\n    b()\n    c()\n", "if a:\n  b()\n", "while a:\n  b()\n"),
        ("run(x, y)\n", "run(x, z, y)\n", "  run(x,  y)\n", "  run(x, z, y)\n"),
        ("log('one', x)\na()\n", "a()\n", "log('two', x)\nb()\n", "b()\n"),
        ("a.b(1)  # why\n", "a.b(1)\n", "  a.b(2)  # why\n", "  a.b(2)\n"),
    ],
)  # fmt: skip
def test_a_pattern_of_the_change_makes_the_expected_text(old: str, new: str, elsewhere: str, expected: str) -> None:
    assert expected in [text for pattern in patterns(change(old, new)) for text in becomes(pattern, elsewhere)]


def test_inserted_lines_have_the_indentation_of_their_place() -> None:
    made = change("  done(a)\n  end()\n", "  done(a)\n  if a:\n    b()\n  end()\n")
    found = {text for pattern in patterns(made) for text in becomes(pattern, "      done(a)\n      end()\n")}
    assert "      done(a)\n      if a:\n        b()\n      end()\n" in found
