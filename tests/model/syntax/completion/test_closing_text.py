"""The grammar completes texts that stop in the middle."""

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax import parses
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.completion import closing_text as ends

STOPS = {
    "rust: a loop over a list, whose block is not begun": (
        "rust",
        "fn f() {\n    for (a, b) in &[\n        (6, 0),\n",
    ),
    "go: constants": ("go", "package a\n\nconst (\n\tb = 1\n"),
    "typescript: one of two types": ("typescript", "type A<B> = B extends string\n  ? { c: B\n"),
    "javascript: arguments": ("javascript", "a.b((c) => {\n  d({ e: [1,\n"),
    "java: a comment in a class": ("java", "class A {\n  int f() {\n    return 1;\n  }\n\n  /**\n   * Says more.\n"),
    "c: an else without a statement": ("c", "int f() {\n  if (a)\n    b();\n  else\n"),
    "cpp: a template": ("cpp", "template <typename A,\n"),
    "nothing is open": ("javascript", "a();\n"),
}


def endings(name: str, text: str, most: int = 8) -> list[bytes]:
    document = Document(text.encode(), [(len(text), len(text))], require(name))
    document.widen()
    balance, _ = document.balance(0)
    junction = document.windows[0].junction(balance.ending(0), ())
    assert junction is not None
    return [ending for ending, _ in zip(junction.endings(), range(most), strict=False)]


@pytest.mark.parametrize("case", STOPS)
def test_an_unfinished_text_is_completed(case: str) -> None:
    name, text = STOPS[case]
    found = endings(name, text)
    assert any(parses(text.encode() + ending, require(name)) for ending in found)
    assert len(set(found)) == len(found)


def test_a_complete_text_needs_no_ending() -> None:
    assert endings("c", "int f() {\n  return 1;\n}\n")[0] == b""


def test_a_search_for_an_ending_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "MOST_VISITED", 1)
    assert endings("javascript", "a(b(c(\n") == []
