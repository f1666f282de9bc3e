"""Completions from the grammar alone: one of the first makes the text valid."""

from collections.abc import Iterator
from itertools import islice

import pytest
from tests.model.syntax.drive import require
from tree_sitter import Parser, Tree

from lacuna_model.syntax import parses
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.completion.prefix import Prefix
from lacuna_model.syntax.completion.repair import MAX_FOUND, MAX_VISITED, Repair, repair_for
from lacuna_model.syntax.completion.suffix import REACH
from lacuna_model.syntax.lr.best_first import Way
from lacuna_model.syntax.lr.parse_table import ParseTable, Stack

FIRST = 3
# A language, the prefix and the suffix of a gap, and a valid fill.
Place = tuple[str, str, str, str]
JAVASCRIPT = ("javascript", "function f(a) {\n", "\n  return a;\n}\n", "  x;")
TYPESCRIPT = ("typescript", "", "\nconst b = 1;\n", "")
GO = ("go", "package a\n\nfunc f(a int) {\n", "\n\treturn\n}\n", "\tx()")
GO_FILE = ("go", "package a\n\n", "\n\nfunc g() {}\n", "")
RUST = ("rust", "fn f(a: u8) {\n", "\n    g();\n}\n", "    x();")
RUST_FILE = ("rust", "", "\nfn g() {}\n", "")
JAVA = ("java", "class A {\n", "\n  int g() { return 1; }\n}\n", "  int x;")
C = ("c", "int f() {\n", "\n  return 1;\n}\n", "  x();")
CPP = ("cpp", "int f() {\n", "\n  return 1;\n}\n", "  x();")
UNFINISHED: list[tuple[Place, tuple[str, ...]]] = [
    (
        JAVASCRIPT,
        (
            "  if",
            "  for",
            "  for (let",
            "  const x =",
            "  a.map((b) => {",
            "  while (a.b",
            "  return {a:",
            "  foo(1, [",
        ),
    ),
    (JAVASCRIPT, ("  switch (a) {\n    case 1:", "  try {", "  const {a, b", "  // a\n  g(")),
    (TYPESCRIPT, ("import", "import type {", "export function f(a: (b:", "type A<T> =", "interface A {\n  b")),
    (TYPESCRIPT, ("const x = <T,", "export class A extends", "enum A { B", "const a: Map<string,")),
    (GO, ("\tif", "\tfor _,", "\tfor i, x :=", "\tx := func(", "\tvar", "\tswitch x := y.(type) {", "\tdefer func(")),
    (GO, ("\tx := map[string]", "\tx := []int{1,", "\tselect {\n\tcase")),
    (GO_FILE, ("func", "func (", "func (r *T) A", "type X", "type X struct {", "import (", "type X interface {\n\tA(")),
    (RUST, ("    if", "    if let", "    let x: Vec<", "    match x {", "    x.iter().map(|p|", "    let Some(")),
    (RUST, ("    while let Some(x) =", "    x.a::<")),
    (RUST_FILE, ("impl", "impl<T", "pub struct A<'a, K,", "use a::{", "#[derive(", "impl<T> A for B<", "enum A { B(")),
    (JAVA, ("  public static final int", "  private final Map<String,", "  void f() { try {", "  int x = y ?")),
    (JAVA, ("  void f() {\n    for (int i = 0; i", "  void f() {\n    do {", "  enum A { B", "  void f() throws")),
    (C, ("  do {", "  for (i = 0;", "  struct a b = {", "  x->y[", "  char *a =", "  x = a ?", "  while (a &&")),
    (
        CPP,
        ("  std::vector<int", "  auto f = [&](", "  for (auto", "  if (x == 1", "  try {", "  std::map<int, std::set<"),
    ),
]
CASES = [pytest.param(place, fill, id=f"{place[0]}-{fill.strip()}") for place, fills in UNFINISHED for fill in fills]
GAP_IN_LIST = (
    "javascript",
    "f(a, {\n\tb: true,\n\tget: function() {\n\t\treturn c;\n",
    "\n\t\treturn d;\n\t}\n});\n",
    "\t",
)


def repair_in(place: Place) -> Repair:
    language = require(place[0])
    left, right, sound = (part.encode() for part in place[1:])
    text = left + sound + right
    assert parses(text, language)
    found = repair_for(language, Parser(language.grammar()).parse(text), text, (len(left), len(left + sound)), None)
    assert found is not None
    return found


def completions(place: Place, fill: str, known: Repair | None = None) -> Iterator[bytes]:
    text = (place[1] + fill).encode()
    return (known or repair_in(place)).completions(text)


def whole(place: Place, fill: str, completion: bytes) -> bytes:
    return place[1].encode() + fill.encode() + completion + place[2].encode()


def first_valid(place: Place, fill: str) -> list[bytes]:
    """Those of the first completions that make the text valid."""
    language = require(place[0])
    assert not parses(whole(place, fill, b""), language)
    return [one for one in islice(completions(place, fill), FIRST) if parses(whole(place, fill, one), language)]


def test_a_fill_without_the_brackets_of_the_known_fill_is_complete() -> None:
    place = (*JAVASCRIPT[:3], "  x()")
    assert next(completions(place, "  y")) == b""


@pytest.mark.parametrize(("place", "fill"), CASES)
def test_one_of_the_first_completions_is_valid(place: Place, fill: str) -> None:
    assert first_valid(place, fill)


@pytest.mark.parametrize(
    ("place", "fill", "completion"),
    [
        (JAVASCRIPT, "  a.map((b) => {", b"})"),
        (JAVASCRIPT, "  foo(1, [", b"])"),
        (GO_FILE, "import (", b")"),
        (RUST, "    if let", b" x=x {}"),
        (JAVA, "  void f() {\n    do {", b"}while(x);}"),
        (C, "  do {", b"}while(x);"),
        (CPP, "  auto f = [&](", b") {};"),
    ],
)
def test_the_first_completion_is_the_cheapest(place: Place, fill: str, completion: bytes) -> None:
    assert next(completions(place, fill)) == completion


def test_no_completion_is_given_twice() -> None:
    found = list(completions(JAVASCRIPT, "  const x ="))
    assert 1 < len(found) <= MAX_FOUND + 1
    assert len({b"".join(one.split()) for one in found}) == len(found)


@pytest.mark.parametrize("fill", ["\t}\n});", "\t}", "\t}\n}, {\n\tb"])
def test_a_bracket_that_a_fill_closes_is_opened_again_for_the_suffix(fill: str) -> None:
    found = first_valid(GAP_IN_LIST, fill)
    assert found
    assert any(b"{" in one for one in found)


@pytest.mark.parametrize(
    ("place", "fill"),
    [
        (("javascript", "f();\n", " b */\ng();\n", "x(); /* a"), "y("),
        (("go", "package a\n\nfunc f() {\n", " b */\n\treturn\n}\n", "\tx() /* a"), "\tif y"),
        (("c", "int f() {\n", " b */\n  return 1;\n}\n", "  x(); /* a"), "  y["),
    ],
)
def test_a_comment_that_ends_in_the_suffix_is_opened(place: Place, fill: str) -> None:
    found = first_valid(place, fill)
    assert found
    assert all(b"/*" in one for one in found)
    assert not any(b"/* a" in one for one in found)


def test_brackets_in_a_comment_do_not_count_as_open() -> None:
    assert next(completions(JAVASCRIPT, "  foo(/* ( [ */ 1, [")) == next(completions(JAVASCRIPT, "  foo(1, ["))


@pytest.mark.parametrize(
    ("place", "fill", "end"),
    [
        (JAVASCRIPT, "  retu", b"rn"),
        (TYPESCRIPT, "expor", b"t"),
        (GO, "\tretu", b"rn"),
        (C, "  retu", b"rn;"),
        (JAVA, "  priv", b"ate"),
        (CPP, "  thr", b"ow;"),
    ],
)
def test_a_keyword_that_is_half_written_is_finished(place: Place, fill: str, end: bytes) -> None:
    found = [one for one in completions(place, fill) if one.startswith(end)]
    assert any(parses(whole(place, fill, one), require(place[0])) for one in found)
    assert not any(one.startswith(b" " + end) for one in completions(place, fill))


C_FILE = ("c", "int g();\n", "\n  return 1;\n}\n", "int f() {")
PYTHON = ("python", "def f(a):\n    a()\n", "\n    return a\n", "    b()")
PYTHON_FILE = ("python", "import a\n\n\n", "\n        a.b()\n    return a\n", "def f(a):\n    if a:")
PYTHON_DICT = ("python", "a = {\n    1: 2,\n", "\n    5: 6,\n}\nb = 1\n", "    3: 4,")


@pytest.mark.parametrize(
    ("place", "fill"),
    [
        (JAVASCRIPT, "  if (a !"),
        (JAVASCRIPT, "  b = a =="),
        (JAVASCRIPT, "  b.replace(/[a"),
        (C_FILE, "#include <std"),
        (RUST, "    x.a:"),
        (JAVASCRIPT, "  instanceof"),
    ],
)
def test_a_mark_or_a_literal_that_is_half_written_is_finished(place: Place, fill: str) -> None:
    assert first_valid(place, fill)


@pytest.mark.parametrize(
    ("place", "fill"),
    [
        (("go", "package a\n\nfunc f() {\n", "\n\t\tx()\n\t}\n}\n", "\t{"), "\ty := g(1)"),
        (C_FILE, "#include <stdlib.h>"),
        (C_FILE, "#"),
    ],
)
def test_a_newline_is_written_where_the_grammar_needs_one(place: Place, fill: str) -> None:
    found = first_valid(place, fill)
    assert any(b"\n" in one for one in found)


@pytest.mark.parametrize(
    ("place", "fill"),
    [
        (("javascript", "const a = b.c\n", "\nconst d = 1\n", ""), "  ?"),
        (("java", "class A { int f() { return a", "; }\n}\n", ""), " ?"),
        (PYTHON, "    a ="),
    ],
)
def test_a_fill_may_continue_the_statement_before_the_gap(place: Place, fill: str) -> None:
    assert first_valid(place, fill)


@pytest.mark.parametrize(
    ("place", "fill"),
    [
        (PYTHON, "    b('c', d="),
        (PYTHON_DICT, "    3: 'a',\n    4"),
        (PYTHON_FILE, "def g("),
        (PYTHON_FILE, "def g(a, b='c'):\n    for"),
    ],
)
def test_fills_in_indented_blocks_are_completed(place: Place, fill: str) -> None:
    assert first_valid(place, fill)


def test_a_reading_of_the_suffix_is_kept_through_other_fills() -> None:
    language, left, right = require("go"), GO[1].encode(), GO[2].encode()
    repair: Repair | None = repair_in(GO)
    seen = []
    for fill in (b"\ty()", b"\tif a {\n\t}", b"\tz()"):
        text = left + fill + right
        tree = Parser(language.grammar()).parse(text)
        repair = repair_for(language, tree, text, (len(left), len(left + fill)), repair)
        assert repair is not None
        seen.append(repair._sound._behind)
    assert seen[0] is seen[1] is seen[2]


def test_a_word_is_separated_from_the_word_before_it() -> None:
    assert next(completions(RUST, "    if let")).startswith(b" ")
    assert next(completions(RUST, "    if let ")).startswith(b"x")


@pytest.mark.parametrize(
    ("place", "fill"),
    [
        (JAVASCRIPT, "  ) ] } ) ]"),
        (JAVASCRIPT, "  (" * 40),
        (GO, "\tfor for for"),
        (RUST, "    ]" * 30),
        (C, "  if ( { [ ( { ["),
    ],
)
def test_the_search_for_a_text_without_a_repair_is_bounded(
    monkeypatch: pytest.MonkeyPatch, place: Place, fill: str
) -> None:
    moved: list[Stack] = []
    read: list[int] = []
    moves, reads = Repair._moves, ParseTable.read

    def counted_moves(self: Repair, way: Way[Stack]) -> Iterator[Way[Stack]]:
        moved.append(way.state)
        return moves(self, way)

    def counted_reads(
        self: ParseTable, stacks: list[Stack], terminal: int, *, on_new_line: bool = False
    ) -> list[Stack]:
        read.append(terminal)
        return reads(self, stacks, terminal, on_new_line=on_new_line)

    known = repair_in(place)
    monkeypatch.setattr(Repair, "_moves", counted_moves)
    monkeypatch.setattr(ParseTable, "read", counted_reads)
    list(completions(place, fill, known))
    assert len(moved) == len(set(moved)) <= MAX_VISITED
    assert len(read) <= 2 * len(fill) + REACH


def test_texts_that_differ_only_in_names_share_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[Stack] = []
    moves = Repair._moves

    def counted(self: Repair, way: Way[Stack]) -> Iterator[Way[Stack]]:
        moved.append(way.state)
        return moves(self, way)

    monkeypatch.setattr(Repair, "_moves", counted)
    known = repair_in(JAVASCRIPT)
    first = list(completions(JAVASCRIPT, "  f(a, ", known))
    searched = len(moved)
    assert list(completions(JAVASCRIPT, "  g(b, ", known)) == first
    assert len(moved) == searched > 0


def test_the_text_before_a_gap_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known = repair_in(JAVASCRIPT)
    started: list[int] = []
    start = Prefix.start

    def counted(self: Prefix, text: bytes, tree: Tree, stop: int) -> list[Stack]:
        started.append(stop)
        return start(self, text, tree, stop)

    monkeypatch.setattr(Prefix, "start", counted)
    language, left, right = require("javascript"), JAVASCRIPT[1].encode(), JAVASCRIPT[2].encode()
    text = left + b"  y(1);" + right
    gap = len(left), len(left) + 7
    other = repair_for(language, Parser(language.grammar()).parse(text), text, gap, known)
    assert other is not None
    assert started == []
    assert next(completions(JAVASCRIPT, "  a.map((b) => {", other)).startswith(b"})")


def test_in_a_repair_the_other_gaps_hold_their_last_valid_fills() -> None:
    left, between, right = b"f(a, () => {\n", b"\n  g();\n", b"\nh();\n"
    gaps = [(len(left), len(left)), (len(left + between), len(left + between))]
    document = Document(left + between + right, gaps, require("javascript"))
    assert document.check([b"  x();", b"});"]).valid
    found = list(islice(document.repairs(0, b"  y(1, ["), FIRST))
    assert any(document.check([b"  y(1, [" + one, b"});"]).valid for one in found)
    assert document.check([b"  x();", b"});"]).valid
    found = list(islice(document.repairs(1, b"  y(1, ["), FIRST))
    assert any(document.check([b"  x();", b"  y(1, [" + one]).valid for one in found)
    assert document.check([b"  if (a) {\n    x(1, 2);\n  }", b"});"]).valid
    found = list(islice(document.repairs(1, b"  y(1, ["), FIRST))
    assert any(document.check([b"  x();", b"  y(1, [" + one]).valid for one in found)


def test_a_fill_of_an_indented_block_is_repaired_too() -> None:
    left, right = b"def f():\n", b"\n    return 1\n"
    document = Document(left + right, [(len(left), len(left))], require("python"))
    assert document.check([b"    x()"]).valid
    found = next(document.repairs(0, b"    y(b,"))
    assert parses(left + b"    y(b," + found + right, require("python"))


@pytest.mark.parametrize(
    ("place", "fill"),
    [
        (("java", "class A {\n  int b() { return fiel", "; }\n}\n", "d().x"), "d().length"),
        (("go", "package a\n\nvar b = c(T{fl", "})\n", "ag: x"), "ag: [1"),
        (("javascript", "f(a.b", ");\n", "c()"), "c((d) => {"),
        (("python", "x = prin", ")\n", "t("), "t(a, [b"),
    ],
)
def test_a_gap_in_the_middle_of_a_word_is_read_with_the_whole_word(place: Place, fill: str) -> None:
    known = repair_in(place)
    language = require(place[0])
    assert any(parses(whole(place, fill, one), language) for one in islice(completions(place, fill, known), FIRST))


def test_a_fill_in_a_long_file_is_repaired() -> None:
    unit = b"class A:\n    def f(self):\n        try:\n            g(1, [2])\n        except B:\n            pass\n\n"
    text = unit * 20 + b"def h():\n    x()\n\n    return 1\n\n\n" + unit * 20
    place = text.index(b"\n    return 1")
    document = Document(text, [(place, place)], require("python"))
    assert document.check([b"    y()"]).valid
    assert next(document.repairs(0, b"    y(b, [")).startswith(b"])")
