"""True fills of real files, cut anywhere: after each of their terminals there is a completion that parses."""

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.syntax.drive import with_exact_test

from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.lr.parse_table import leaves

SAMPLES = Path(__file__).parents[3] / "data" / "syntax"
MOST_TRIED = 24
LONGEST = 12  # terminals of a gap
FILES = {"go": "cache.go", "javascript": "queue.js"}


def is_sound(document: Document, fill: bytes) -> bool:
    return document.check([fill]).valid


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_the_true_fill_is_admitted_terminal_by_terminal(name: str, data: st.DataObject) -> None:
    language = with_exact_test(name)
    text = (SAMPLES / FILES[name]).read_bytes()
    borders = [leaf.start_byte for leaf in leaves(language.parser().parse(text).root_node, 0) if leaf.start_byte]
    first = data.draw(st.integers(0, len(borders) - 2))
    last = data.draw(st.integers(first + 1, min(first + LONGEST, len(borders) - 1)))
    begin, stop = borders[first], borders[last]
    document = Document(text[:begin] + text[stop:], [(begin, begin)], language)
    window = document.windows[0]
    for place in borders[first : last + 1]:
        beginning = text[begin:place]
        ways = islice(window.linked((), beginning), MOST_TRIED)
        assert any(is_sound(document, beginning + way) for way in ways), (text[begin:stop], beginning)


@pytest.mark.parametrize(
    ("name", "front", "behind"),
    [("go", "package p\nfunc f() {\n\tx := g(", "\n}\n"), ("javascript", "function f() {\n  g(a, [", "\n}\nh();\n")],
)
def test_the_cheapest_completion_closes_what_is_open(name: str, front: str, behind: str) -> None:
    place = len(front.encode())
    document = Document((front + behind).encode(), [(place, place)], with_exact_test(name))
    assert is_sound(document, next(document.windows[0].linked((), b"")))


def test_a_text_that_no_fill_completes_has_no_completion() -> None:
    document = Document(b"package p\nfunc f() {\n}\n", [(21, 21)], with_exact_test("go"))
    assert list(document.windows[0].linked((), b"x := := ")) == []


def test_a_gap_may_leave_open_what_the_next_gap_closes() -> None:
    text = b"function f() {\n  g([\n  1,\n  2\n}\n"
    first, second = text.index(b"\n  1"), text.index(b"\n}")
    document = Document(text, [(first, first), (second, second)], with_exact_test("javascript"))
    window = document.windows[0]
    (opened, *_) = window.linked((), b"")
    (closed, *_) = window.linked((opened,), b"")
    assert document.check([opened, closed]).valid


def test_a_name_may_begin_with_a_keyword() -> None:
    text = b"package p\nconst (\n\tx = 1\n)\n"
    place = text.index(b"x = 1")
    document = Document(text[:place] + text[place + 5 :], [(place, place)], with_exact_test("go"))
    assert any(is_sound(document, b"default" + way) for way in document.windows[0].linked((), b"default"))
