"""Heads of classes, as what follows tells."""

import pytest

from lacuna_model.syntax.naming import heads_behind, with_heads
from lacuna_model.syntax.right_side import RightSide

from .drive import between, require

HEADS = {
    "java: a constructor": ("java", "\n  public Ab(int x) {\n  }\n}\n", b"class Ab"),
    "java: a constructor without a modifier": ("java", "\n  int a;\n\n  Ab() {\n  }\n}\n", b"class Ab"),
    "java: that of a class within": ("java", "\n  static class Cd {\n    Cd() {\n    }\n  }\n}\n", b"class x"),
    "java: a call": ("java", "\n  int a = b(c);\n  void d() {\n  }\n}\n", b"class x"),
    "javascript: an heir": ("javascript", "\n  constructor() {\n    super()\n  }\n}\n", b"class x extends x"),
    "javascript: a method's own": ("javascript", "\n  a() {\n    super.a()\n  }\n}\n", b"class x"),
    "cpp: nothing": ("cpp", "\n  Ab(int x) {\n  }\n};\n", b"class x"),
}


@pytest.mark.parametrize("case", HEADS)
def test_what_follows_names_a_class(case: str) -> None:
    name, after, head = HEADS[case]
    assert heads_behind(RightSide(after.encode(), require(name).lexicon)).get(b"class x", b"class x") == head


def test_only_classes_that_a_completion_made_up_are_named() -> None:
    assert with_heads(b"}class x {class xy {", {b"class x": b"class Ab"}) == b"}class Ab {class xy {"


def test_what_is_awaited_stands_in_a_function_that_is_async() -> None:
    document, closer = between("const a = b('a')\n\n", "\n  await a()\n}\n", require("javascript"))
    valid = [text for text in closer.completions(b"") if document.check_fresh([text]).valid]
    assert valid[0] == b"async function x() {"


def test_completions_have_such_heads() -> None:
    document, closer = between("import a.b;\n\n", "\n  int c;\n\n  Ab(int d) {\n    c = d;\n  }\n}\n", require("java"))
    first = next(text for text in closer.completions(b"") if document.check_fresh([text]).valid)
    assert first == b"class Ab {"


@pytest.mark.parametrize(
    ("before", "after"), [("@b(\n    c,\n", "\n    d = 1\n"), ("class A:\n    @b(c=\n", "\n        d = 1\n")]
)
def test_a_decorator_that_is_closed_has_something_to_decorate(before: str, after: str) -> None:
    document, closer = between(before, after, require("python"))
    valid = next(text for text in closer.completions(b"") if document.check_fresh([text]).valid)
    assert b"def x():" in valid
