"""The exact test in a window, also where a gap ends in a comment."""

from itertools import islice

from tests.model.syntax.drive import require, with_exact_test

from lacuna_model.syntax.check.document import Document

TEXT = b"f(1);\nfunction g(a) {\n  return [a, 2];\n}\n"


def cut(text: bytes, begin: bytes, stop: bytes) -> Document:
    first, last = text.index(begin), text.index(stop)
    return Document(text[:first] + text[last:], [(first, first)], with_exact_test("javascript"))


def test_the_cheapest_completion_comes_first() -> None:
    document = cut(TEXT, b"a, 2", b"];")
    assert next(document.windows[0].linked((), b"b, h(")) == b")"
    assert document.check([b"b, h()"]).valid


def test_a_beginning_that_nothing_completes_has_no_completions() -> None:
    document = cut(TEXT, b"a, 2", b"];")
    assert list(document.windows[0].linked((), b"b; :")) == []


def test_a_gap_that_ends_in_a_comment_opens_it() -> None:
    document = cut(b"f(1);\n/* one\n two */\ng(2);\n", b"1", b" two")
    found = [way for way in islice(document.windows[0].linked((), b"1, "), 8) if document.check([b"1, " + way]).valid]
    assert found
    assert all(way.endswith(b"/*") for way in found)


def test_a_language_without_the_exact_test_has_no_linked_completions() -> None:
    document = Document(b"x = (\n", [(5, 5)], require("python"))
    assert list(document.windows[0].linked((), b"")) == []
