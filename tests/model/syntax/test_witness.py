"""The search for a first witness: what it parses, and what a deadline ends."""

import math
import time
from typing import Any

import numpy as np
import pytest
from tree_sitter import Tree

from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.core.params import Region
from lacuna_model.languages import parsing
from lacuna_model.syntax import SyntaxConstraint
from lacuna_model.syntax.check import compilers
from lacuna_model.syntax.check.document import Check, Document
from lacuna_model.syntax.check.python_compiler import compiled

from .conftest import SmallTokens
from .drive import certain, fill, require


def constraint_of(marked: str, language: str, tokens: SmallTokens, **options: Any) -> SyntaxConstraint:
    """A constraint with a gap at each mark of a text."""
    pieces = marked.encode().split(b"|")
    ends = [sum(map(len, pieces[: count + 1])) for count in range(len(pieces) - 1)]
    regions = [Region(end, end, max_tokens=8) for end in ends]
    return SyntaxConstraint(b"".join(pieces), regions, require(language), tokens, **options)


def open_view() -> GapView:
    ids, logp = np.full((4, 1), 5, dtype=np.int64), np.full((4, 1), -0.1, dtype=np.float32)
    return GapView((), (None,) * 4, ids, logp, budget=4)


def test_a_search_parses_less_than_the_entire_text(tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[int] = []
    counted = parsing.Parser.counted

    def spy(self: parsing.Parser, text: bytes, old: Tree | None, most: float) -> object:
        if most < math.inf:  # parses of the search have a bound, others do not
            texts.append(len(text))
        return counted(self, text, old, most)

    monkeypatch.setattr(parsing.Parser, "counted", spy)
    rest = "\n\nint f(int x) {\n  return x;\n}\n" * 50
    constraint = constraint_of(f"int g(int x) {{\n  return (x|;\n}}\n{rest}", "c", tokens)
    assert constraint.foresee([open_view()]) == [")"]
    assert 0 < max(texts) < len(rest)


def test_the_compiler_is_asked_once_about_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[bytes]()

    def spy(text: bytes, flags: int) -> None:
        asked.append(text)
        compiled(text, flags)

    monkeypatch.setattr(compilers, "compiled", spy)
    text = b"def f(x):\n    return x\n\n\ny = \n"
    document = Document(text, [(len(text) - 1, len(text) - 1)], require("python"))
    assert document.check_fresh([b"f(1)"]).valid
    assert len(asked) == 1
    assert not document.check_fresh([b"1\nreturn y"]).valid


def test_a_single_line_fill_is_ended_early_if_the_model_goes_on_to_another_line(tokens: SmallTokens) -> None:
    text = "if (a) {\n  b();\n} else\n"
    place = text.index("\n", text.index("else"))
    region = Region(place, place, 24, max_lines=1, single_line=True)
    constraint = SyntaxConstraint(text.encode(), [region], require("javascript"), tokens)
    said = tokens.encode(" {\n  c();\n}")
    verdict = fill(constraint, certain([said], tokens.eog_id), [24], tokens.eog_id)
    assert verdict.fills == (" {}",)


def test_the_next_search_starts_from_the_fill_that_the_grammar_found(tokens: SmallTokens) -> None:
    text = b"class A {\n  public A(Stri\n"
    region = Region(len(text) - 1, len(text) - 1, 24, max_lines=1, single_line=True)
    constraint = SyntaxConstraint(text, [region], require("java"), tokens)
    truth = "ng text, int size) {}"
    verdict = fill(constraint, certain([tokens.encode(truth)], tokens.eog_id), [24], tokens.eog_id)
    assert verdict.fills == (truth,)
    assert constraint._document is not None
    assert all(window.settled for window in constraint._document.windows)


def test_after_the_deadline_nothing_is_searched(tokens: SmallTokens) -> None:
    constraint = constraint_of("f(|)\n", "python", tokens, deadline=time.monotonic() - 1)
    assert constraint.admit([open_view()], [Commit(0, 0, 5)]) == []
    assert constraint.stats.verifies == 0


def test_after_the_deadline_a_fill_is_still_finished(tokens: SmallTokens) -> None:
    constraint = constraint_of("f(|)\n", "python", tokens, deadline=time.monotonic() - 1)
    assert constraint.finish([open_view()], truncate=True).status == "ok"


def test_no_witness_is_kept_that_the_check_of_the_document_refuses(
    tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Check(((0, 0),))
    monkeypatch.setattr(Document, "check_soon", lambda self, fills: refused if b"1" in fills[0] else Check(()))
    constraint = SyntaxConstraint(b"a = \nb = 2\n", [Region(4, 4, max_tokens=1)], require("python"), tokens)
    ids = np.array([[tokens.encode("1")[0], tokens.encode("2")[0]]])
    view = GapView((), (None,), ids, np.log(np.array([[0.9, 0.1]], dtype=np.float32)))
    constraint.admit([view], [Commit(0, 0, int(ids[0, 0]))])
    assert constraint.witness not in (None, ("1",))
