import pytest
from tests.model.syntax.drive import first_fill, require

from lacuna_model.core.constraint import TokenText
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.text.literals import Tags, scan_tags


@pytest.mark.parametrize(
    ("before", "behind", "due"),
    [
        ("<b>x", ";", ["b"]),
        ("<ul><li>x", "</ul>", ["li"]),
        ("<ul><li>", "</li></ul>", []),
        ("<a><b/><c d={e > f} g='>'>", "", ["c", "a"]),
        ("<><a.b>", "", ["a.b", ""]),
        ("<p><br><img src=x>", "", ["p"]),
        ("const x: Array<string> = <b>", "", ["b"]),
        ("if (a < b && c > d) {", "", []),
        ("<a>", "</b>", []),
    ],
)
def test_open_tags_that_the_suffix_does_not_close_are_due(before: str, behind: str, due: list[str]) -> None:
    assert Tags(before.encode(), behind.encode()).unclosed(b"") == [name.encode() for name in due]


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
    ],
)
def test_a_search_closes_open_tags(name: str, before: str, after: str, fill: str, tokens: TokenText) -> None:
    found = first_fill(before, after, require(name))
    assert found is not None
    assert fill in found
    place = len(before)
    own = Document((before + after).encode(), [(place, place)], require(name))
    assert own.check_fresh([found.encode()]).valid
