"""Fills of one line in unfinished files, whose blocks are still open."""

import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import certain, fill, require
from tree_sitter import Parser

from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint
from lacuna_model.syntax.broken.unfinished import Unfinished, count_open, document_of
from lacuna_model.syntax.check.document import Document

GAP = "<>"


def typed(name: str, marked: str) -> Document:
    """The document of a file whose line with the mark is being typed."""
    place = marked.encode().index(GAP.encode())
    return document_of(marked.replace(GAP, "").encode(), [(place, place)], require(name), in_line=True)


CASES = [
    ("java", "class A {\n  void f() {\n    int a = <>\n", ["1;", "f(1);", "f(1);}", "f(1);}}"], ["1", "f(1;", "1;}}}"]),
    ("java", "class A {\n  void f() {\n    foo(a,\n      <>\n", ["b", "b,", "b);", "b(c)"], ["b(", "b;"]),
    ("java", "class A {\n  void f() {\n    int[] a = {\n      <>\n", ["3", "3,", "3};"], ["3;", "{"]),
    ("typescript", "const a = {\n  b: 1,\n  <>\n", ["c: 2", "c: 2,", "c() {}", "};"], ["c(", "c: 2;"]),
    ("javascript", "a(() => {\n  if (b) {\n    c();\n  } <>\n", ["else if (d) { e(); }", ""], ["else", "else {", "{"]),
    ("rust", "fn f() {\n  let a = A {\n    b: 1,\n    <>\n", ["c: 2", "c: 2,", "};"], ["c: 2;", "c(: 2"]),
    ("go", "func f() {\n\tif a {\n\t\tb(<>\n", ["c)", "c)}"], ["c", "c))"]),
    ("c", "#ifndef A_H\n#define A_H\n\n<>\n", ["int a;", "#endif", '#include "x.h"'], ["int f(int", "}"]),
    ("c", "#ifdef A\nstruct a {\n  int b;\n  <>\n", ["int a;", "};", ""], ["int", "]"]),
    ("cpp", "namespace a {\nclass B {\n public:\n  <>\n", ["int b();", "};"], ["int b()", ")"]),
    ("python", "def f(\n  a,\n  <>\n", ["b", "b,", "b=1"], ["b(", "b]"]),
    ("python", "x = [\n  f(a),\n  <>\n", ["b", "b,", "]"], ["f(", ")"]),
    ("javascript", "function f() {\n  try {\n    a({\n      <>\n", ["b,", "});", "}"], ["b;"]),
    ("java", "class A {\n  void f() {\n    a();\n    <>\n", ["b();", "}"], ["b->", "b"]),
    ("java", "class A {\n  @Test\n  void f()<>\n", [" {}", " {} }", ";"], [" {", ""]),
    ("typescript", "class A {\n  <>\n", ["@B()", "a = 1;", "a() {}"], ["@B(", "a() {"]),
    ("python", "class A(\n    B,\n    <>\n", ["C", "C,"], ["C:", "@C"]),
    ("lua", "function f()\n  if a then\n    <>\n", ["b()", "end"], ["b(", "end end end"]),
]


@pytest.mark.parametrize(("name", "marked", "valid", "invalid"), CASES)
def test_a_line_need_not_end_the_blocks_around_it(name: str, marked: str, valid: list[str], invalid: list[str]) -> None:
    document = typed(name, marked)
    assert isinstance(document, Unfinished)
    for one in (*valid, *invalid):
        assert document.check((one.encode(),)).valid == (one in valid), one
        assert document.check_fresh((one.encode(),)).valid == (one in valid), one


def test_a_block_is_ended_before_code_with_less_indentation() -> None:
    document = typed("go", "func f() {\n\tif a {\n\t\t<>\n\nfunc g() {\n}\n")
    assert isinstance(document, Unfinished)
    assert document.check_fresh((b"b()",)).valid
    assert not document.check_fresh((b"b(",)).valid


def test_a_fill_of_several_lines_must_end_the_blocks() -> None:
    text = b"int f() {\n  "
    document = document_of(text, [(len(text), len(text))], require("c"), in_line=False)
    assert not document.check_fresh((b"a();",)).valid
    assert document.check_fresh((b"a();\n}",)).valid


def test_the_line_of_a_model_in_an_unfinished_file_is_delivered(tokens: SmallTokens) -> None:
    before, truth = "class A {\n  void f() {\n    if (a) {\n      ", "b(c);"
    text = before.encode() + b"\n"
    place = len(before)
    region = Region(place, place, 24, max_lines=1, single_line=True)
    constraint = SyntaxConstraint(text, [region], require("java"), tokens)
    model = certain([tokens.encode(truth)], tokens.eog_id)
    verdict = fill(constraint, model, [24], tokens.eog_id)
    assert (verdict.status, verdict.fills) == ("ok", (truth,))
    assert constraint.stats.vetoes == 0
    closed = text[:place] + truth.encode() + b"}}}" + text[place:]
    assert not Parser(require("java").grammar()).parse(closed).root_node.has_error


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("lua", "function f()\n  for a in b do\n    c()\n  en", "d\n  return d\nend\n"),
        ("bash", "if a; then\n  b\nf", "i\nc\n"),
        ("ruby", "def f\n  if a\n    b\n  e", "nd\nend\n"),
    ],
)
def test_a_line_that_parts_a_closer_may_stay_as_it_is(tokens: SmallTokens, name: str, before: str, after: str) -> None:
    place = len(before)
    region = Region(place, place, 8, max_lines=1, single_line=True)
    constraint = SyntaxConstraint((before + after).encode(), [region], require(name), tokens)
    assert fill(constraint, certain([[]], tokens.eog_id), [8], tokens.eog_id).fills == ("",)


@pytest.mark.parametrize(
    ("text", "counts"),
    [("#if A\n#if B\n#endif\n", (1, 0)), ("x\n#endif\n", (0, 1)), ("#ifdef A\n# endif\n#endif\n", (0, 1))],
)
def test_conditional_lines_are_counted(text: str, counts: tuple[int, int]) -> None:
    assert count_open(text.encode()) == counts
