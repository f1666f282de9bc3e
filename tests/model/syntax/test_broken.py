"""Fills in files that are not clean: with errors elsewhere, unfinished, from a merge, or newer than the grammar."""

import numpy as np
import pytest

from lacuna_model.core.work import Clock
from lacuna_model.syntax import Language
from lacuna_model.syntax.faults import all_faults
from lacuna_model.syntax.judge import Judge

from .cases import Case, load
from .conftest import SmallTokens
from .drive import Model, delivered, noisy, require, writes

MARK = "<|>"
FEW = 64
# Files with errors outside of the line with the gap, and the text that is typed in the line.
BROKEN = load("broken_lines")
# Each of these files has a statement, a branch or a header that the grammar cannot read; the compilers can.
NEWER = load("newer_syntax")


def split(marked: str) -> tuple[bytes, int]:
    return marked.replace(MARK, "").encode(), marked.encode().index(MARK.encode())


def typed(name: str, text: bytes, place: int, model: Model, tokens: SmallTokens, most: int = 32) -> str | None:
    """What is delivered for the rest of a line."""
    before, after = text[:place].decode(), text[place:].decode()
    return delivered(name, before, after, model, tokens, room=most, max_lines=1, single_line=True)


@pytest.mark.parametrize("case", BROKEN)
def test_a_line_is_not_refused_for_errors_that_the_file_had_before(tokens: SmallTokens, case: Case) -> None:
    (wanted,) = case.takes
    model = writes(wanted, tokens)
    assert (typed(case.language, case.text, case.place, model, tokens) or "").startswith(wanted)


def errors(text: bytes, language: Language) -> int:
    return len(all_faults(language.parser().parse(text), text, language))


@pytest.mark.parametrize("case", BROKEN)
def test_a_fill_leaves_no_more_errors_than_the_neutral_or_the_right_fill(tokens: SmallTokens, case: Case) -> None:
    language, text, place, (wanted,) = require(case.language), case.text, case.place, case.takes
    neutral = language.lexicon.operand
    most = max(errors(text[:place] + one + text[place:], language) for one in (neutral, b"", wanted.encode()))
    for seed in range(2):
        model = noisy([tokens.encode(wanted)], tokens, np.random.default_rng(seed), 1.0)
        found = typed(case.language, text, place, model, tokens, 16) or ""
        assert errors(text[:place] + found.encode() + text[place:], language) <= most, found


@pytest.mark.parametrize("case", NEWER)
def test_a_fill_beside_newer_syntax_is_what_the_model_writes(tokens: SmallTokens, case: Case) -> None:
    (wanted,) = case.takes
    rules = {"max_lines": 1, "single_line": True} if "\n" not in wanted else {}
    model = writes(wanted, tokens)
    assert delivered(case.language, case.before, case.after, model, tokens, room=FEW, **rules) == wanted


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("python", "x = f(<|>\ny = 2\n"),
        ("c", "int f(void) <|>\n  return 1;\n}\n"),
        ("javascript", "items.forEach(<|>\n  x();\n});\n"),
        ("java", "class A {\n  int f(final int a, <|>\n    return a;\n  }\n}\n"),
        ("typescript", "type A<T> =\n  T extends string\n    ? B<<|>\n        T,\n      >\n    : never\n"),
        ("go", "package a\n\nfunc f() {\n\tx := <|>\n}\n"),
        ("lua", "if a <|>\n  b()\nend\n"),
        ("python", "try:\n    a()\n<|>\n    b()\n"),
        ("json", '{"a": 1 <|>\n"b": 2}\n'),
        ("php", "<?php\nfunction f() {\n    return 1<|>    private $a = 2;\n}\n"),
    ],
)
def test_nothing_is_tolerated_in_a_text_that_the_line_may_repair(name: str, marked: str) -> None:
    text, place = split(marked)
    judge = Judge(text, (place, place), require(name), Clock(), in_line=True)
    assert judge.closers_after(b"x x") is None


@pytest.mark.parametrize(
    ("name", "marked", "wanted"),
    [
        ("javascript", "x = = 3\nlet y = <|>\n", "g(1);"),
        ("css", "pre {\n  padding: 0.<|>", "5em;"),
        ("tsx", "const a = (b) => (\n  <ul>\n    {b.map((c, i) => (\n      <li key<|>", "={i}>"),
    ],
)
def test_what_is_typed_in_a_broken_text_is_delivered(tokens: SmallTokens, name: str, marked: str, wanted: str) -> None:
    found = typed(name, *split(marked), writes(wanted, tokens), tokens)
    assert (found or "").startswith(wanted.rstrip(";"))


# Lines of files whose blocks are still open: those that are taken as they are, and those that are not.
UNFINISHED = [
    ("java", "class A {\n  void f() {\n    int a = <|>\n", ["1;", "f(1);", "f(1);}"], ["f(1;", "1;}}}"]),
    ("java", "class A {\n  void f() {\n    foo(a,\n      <|>\n", ["b", "b,", "b);", "b(c)"], ["b("]),
    ("typescript", "const a = {\n  b: 1,\n  <|>\n", ["c: 2", "c: 2,", "c() {}", "};"], ["c("]),
    ("javascript", "a(() => {\n  if (b) {\n    c();\n  } <|>\n", ["else if (d) { e(); }"], ["else {", "{"]),
    ("rust", "fn f() {\n  let a = A {\n    b: 1,\n    <|>\n", ["c: 2", "c: 2,", "};"], ["c(: 2"]),
    ("go", "func f() {\n\tif a {\n\t\tb(<|>\n", ["c)", "c)}"], ["c))"]),
    ("go", "func f() {\n\tif a {\n\t\t<|>\n\nfunc g() {\n}\n", ["b()"], ["b("]),
    ("c", "#ifndef A_H\n#define A_H\n\n<|>\n", ["int a;", "#endif", '#include "x.h"'], ["int f(int", "}"]),
    ("cpp", "namespace a {\nclass B {\n public:\n  <|>\n", ["int b();", "};"], [")"]),
    ("python", "def f(\n  a,\n  <|>\n", ["b", "b,", "b=1"], ["b(", "b]"]),
    ("python", "class A(\n    B,\n    <|>\n", ["C", "C,"], ["C["]),
    ("lua", "function f()\n  if a then\n    <|>\n", ["b()", "end"], ["b(", "end end end"]),
]


@pytest.mark.parametrize(("name", "marked", "taken", "refused"), UNFINISHED)
def test_a_line_need_not_end_the_blocks_around_it(
    tokens: SmallTokens, name: str, marked: str, taken: list[str], refused: list[str]
) -> None:
    for line in (*taken, *refused):
        found = typed(name, *split(marked), writes(line, tokens), tokens)
        assert (found == line) == (line in taken), (line, found)


@pytest.mark.parametrize(
    ("name", "text", "whole", "parts"),
    [
        (
            "c",
            "int f(void) {\n  if (x) {\n    ",
            ["y = 1;", "g();", "}"],
            ["y = 1", "return x", "int", "for (;;)", "g(a,"],
        ),
        ("java", "class A {\n  int f() {\n    ", ["int x = 1;", "}"], ["int x = 1", "return x", "this."]),
        ("csharp", "class A {\n  void F() {\n    ", ["g();"], ["g()", "x."]),
        ("typescript", "class A {\n  f() {\n    ", ["const a = 1", "}"], ["const", "if (x)"]),
        ("rust", "fn f() {\n    if x {\n        ", ["let a = 1;", "y()"], ["let", "let a = 1"]),
    ],
)
def test_the_last_line_of_an_unfinished_file_is_whole(name: str, text: str, whole: list[str], parts: list[str]) -> None:
    """It is as if what is open above were closed behind it."""
    judge = Judge(text.encode(), (len(text), len(text)), require(name), Clock(), in_line=True)
    assert [line for line in (*whole, *parts) if judge.final(line.encode())] == whole


def test_a_gap_in_a_word_that_closes_a_block(tokens: SmallTokens) -> None:
    for text in ("function f()\n  a()\ne<|>d\n", "if a; then\n  b\nf<|>\n"):
        name, wanted = ("lua", "n") if "function" in text else ("bash", "i")
        assert typed(name, *split(text), writes(wanted, tokens), tokens) == wanted
