"""Tags that a text leaves open, and what closes them."""

import pytest

from lacuna_model.syntax.sides import Tags, scan_tags

from .drive import first_fill, require


@pytest.mark.parametrize(
    "text",
    ["</" + "a" * 300_000, "<" + "a" * 300_000, "<a" + " b" * 150_000, "<a b={" + "a" * 300_000, "<a " + "/" * 300_000],
)
def test_a_tag_that_does_not_end_is_read_once(text: str) -> None:
    """Read in every possible way, it would take hours, in which no other thread of Python runs."""
    assert scan_tags(text.encode()) == ([], [])
    assert Tags(text.encode(), text.encode()).unclosed(b"") == []


def test_many_closing_tags_are_named_in_one_pass() -> None:
    """With all of the text read again for each of them, this takes hours."""
    names = [b"a%d" % number for number in range(2_800)]
    tags = Tags(b"".join(b"<%b>" % name for name in names), b"")
    named = b"".join(b"x</%b>" % name for name in reversed(names))
    assert tags.named(b"", b"x</y>" * 100_000) == named + b"x</y>" * (100_000 - len(names))


@pytest.mark.parametrize(
    ("name", "before", "after", "fill"),
    [
        ("tsx", "const a = <b>x", ";\n", "</b>"),
        ("tsx", "const a = <ul><li>x", "</ul>;\n", "</li>"),
        ("tsx", "const a = <>x", ";\n", "</>"),
        ("tsx", "const a = <A.B>x</", ">;\n", "A.B"),
        ("javascript", "const a = <b c={d}>x", ";\n", "</b>"),
        ("javascript", "const a = (\n  <ul>\n    {b.map((c) => <li>x", "\n  </ul>\n);\n", "</li>)}"),
        ("tsx", "const a = <", ">x</b.c>;\n", "b.c"),
        ("tsx", "const a = <>b<c", " d='e'>x</cf></>;\n", "f"),
        ("html", "<ul><b>x", "</ul>\n", "</b>"),
        ("php", "<?php\nif (a()) {\n    b(1", "\n", ");}"),
        ("python", "def f(self, a", "\n    return a\n", "):"),
        ("python", "try:\n    x = 1\n", "y = 2\n", "finally: pass"),
        ("python", "def f():\n    a = 1\n    ", " in x:\n        print(1)\n", "if x"),
        ("python", "class A:\n    def f(self):\n        x = [\n            1,\n", "\n    def g(self): pass\n", "]"),
    ],
)
def test_the_shortest_fill_closes_what_is_open(name: str, before: str, after: str, fill: str) -> None:
    found = first_fill(before, after, require(name))
    assert found is not None
    assert fill in found
