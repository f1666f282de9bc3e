"""Fills that the grammar accepts and the language does not, beside what the file holds of their kind already.

The fills themselves are cases (``misplaced``, ``declared_twice``), which ``test_cases`` drives.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.languages.registry import LANGUAGES
from lacuna_model.syntax import Language
from lacuna_model.syntax.document import Document
from lacuna_model.syntax.placement import line_end_faults, placement_in

from .cases import Case, load
from .conftest import Samples
from .drive import require

IN_FUNCTION = "package a\n\nfunc f() {{\n\t{}\n}}\n"
TWICE = load("declared_twice")


def document(name: str, before: str, after: str, *, in_line: bool = False) -> Document:
    return Document((before + after).encode(), [(len(before), len(before))], require(name), in_line=in_line)


def takes(own: Document, fill: str) -> bool:
    """Whether both checks take a fill; they agree."""
    valid = not own.check([fill.encode()])
    assert bool(own.check_fresh([fill.encode()])) != valid
    return valid


@pytest.mark.parametrize("name", [language.name for language in LANGUAGES if language.rules])
def test_samples_have_no_misplaced_node(samples: dict[str, tuple[Language, bytes]], name: str) -> None:
    language, text = samples[name]
    placement, tree = placement_in(language), language.parser().parse(text)
    assert placement is not None
    assert not placement.strays(tree) | placement.reserved_names(tree, text, [(0, len(text))])
    assert language.name != "go" or not line_end_faults(tree, text, None)


def test_a_node_that_only_the_gap_misplaces_is_a_fault() -> None:
    own = document("rust", "use", "fmt;\n\nfn f() {}\n")
    assert not takes(own, "")
    assert takes(own, " ")


def test_statements_after_a_gap_are_misplaced_until_a_fill_restores_their_function() -> None:
    before, after = b"namespace a {\nint b;\n", b"\n  while (b) c();\n  return 1;\n}\n"
    places = [(len(before), len(before)), (len(before + after), len(before + after))]
    own = Document(before + after + b"\n}\n", places, require("cpp"))
    assert not own.check_fresh([b"int f(int b) {", b""])
    assert own.check_fresh([b"int f(int b);", b"namespace d {"])


def test_a_statement_is_not_misplaced_if_the_text_has_one_in_such_a_place_too() -> None:
    other = "int unrelated_%d;\n" * 200 % tuple(range(200))
    for far, valid in (("if (x) y();\n", True), ("int x;\n", False)):
        assert takes(document("c", far + other, "\n" + other), "if (z) y();") == valid


def test_words_after_a_fill_are_checked_too() -> None:
    own = document("java", "class A {\n  ", "\n\n  public int x;\n}\n")
    assert not own.check([b"int y;"])
    assert own.check([b"int"])


@pytest.mark.parametrize(
    ("language", "before", "after", "fill"),
    [
        ("javascript", "open('a', , b);\nrun('c", "\nrun('d', 'e');\n", "');"),
        ("java", "class A {\n  void s() { 1 + 2; }\n  int a ", "\n  int b;\n}\n",
         "= 1;"),
        ("tsx", "const a = <b>c ", "</d>;\n", "e"),
        ("tsx", "const a = <b>c</d>;\nconst e = ", ";\n", "1"),
        ("html", "<div><b>a</div>\n<p>", "</p>\n", "c"),
        ("html", "<div><b>long\n", "\n</div>\n", "c"),
        ("html", "<ul><li>a", "</ul>\n", "<li>d"),
        ("html", "<input>", "<hr/>\n", "<IMG>"),
        ("json", '{"a": 1}\n{"b": 2}\n', "\n", " "),
    ],
)  # fmt: skip
def test_what_was_misplaced_before_may_stay(language: str, before: str, after: str, fill: str) -> None:
    assert takes(document(language, before, after), fill)


@pytest.mark.parametrize("case", TWICE)
def test_a_name_that_was_declared_twice_before_may_stay(case: Case) -> None:
    for again in case.refuses:
        text = (case.before + again + case.after).encode()
        end = case.place + len(again.encode())
        for place in (case.place, end, len(text)):
            assert takes(Document(text, [(place, place)], require(case.language)), "")
        assert not Document(text, [(case.place, end)], require(case.language)).check_fresh([again.encode()])


@given(lines=st.lists(st.sampled_from(["x()", "if x {", "}", "for x {", "y := 1", "}()", "func() {"]), max_size=8))
def test_lines_of_go_that_parse_with_semicolons_have_no_fault_without_them(lines: list[str]) -> None:
    text, parser = IN_FUNCTION.format(";\n".join(lines)).encode(), require("go").parser()
    if not parser.parse(text).root_node.has_error:
        without = text.replace(b";\n", b"\n")
        assert not line_end_faults(parser.parse(without), without, None)


# Statements with a mark where a line may not end.
STATEMENTS = [
    "x := []int{1, 2| }",
    "g(1, 2| )",
    "x := []T{{}, {}| }",
    'x := T{a: "b"| }',
    "x := m[i| ]",
    "if x | { g() }",
    "for i := 0; i < 3; i++ | { g() }",
    "switch x | { case 1: }",
    "x := func() int | { return 1 }",
    "g(x | ...)",
]


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", " // b\n", "\n\n\t// b\n"])
def test_a_line_of_go_may_not_end_at_the_mark(statement: str, line_end: str) -> None:
    before, after = IN_FUNCTION.split("{}", maxsplit=1)[0].replace("{{", "{"), "\n}\n"
    assert takes(document("go", before, after), statement.replace("|", ""))
    assert not takes(document("go", before, after), statement.replace("|", line_end))


STRINGS = {
    "python": ('print("a ', '", name)\n'),
    "javascript": ('f("a ', '", name);\n'),
    "typescript": ("f('a ", "', name);\n"),
    "tsx": ('a = <b c="', '"/>;\n'),
    "c": ('char *x = "a', '";\n'),
    "cpp": ('auto x = "a', '";\n'),
    "java": ('class A { String x = "a', '"; }\n'),
    "csharp": ('class A { string x = "a', '"; }\n'),
    "go": ('package a\nvar x = "a', '"\n'),
    "rust": ('const X: &str = "a', '";\n'),
    "ruby": ('f("a', '", name)\n'),
    "php": ('<?php f("a', '", $name);\n'),
    "lua": ('f("a', '", name)\n'),
    "bash": ('f "a', '" name\n'),
    "json": ('["a', '"]\n'),
    "yaml": ('x: ["a', '"]\n'),
    "toml": ('x = ["a', '"]\n'),
    "css": ('a { b: "a', '" }\n'),
    "html": ('<a b="', '">x</a>\n'),
}


@pytest.mark.parametrize("name", STRINGS)
def test_a_fill_of_one_line_stays_in_the_string(name: str) -> None:
    before, after = STRINGS[name]
    for between in (" + ", ", ", " ", " c=", " .. ", " . "):
        assert not takes(document(name, before, after, in_line=True), f"b{after[0]}{between}{after[0]}c")
    assert takes(document(name, before, after, in_line=True), "b c")


def test_code_in_a_string_is_checked_as_code_and_a_string_may_be_closed() -> None:
    assert takes(document("javascript", "x = `a ${f(", ")}`;\n", in_line=True), "`b`, 'c'")
    assert takes(document("javascript", "x = `a ", "`;\n", in_line=True), "${`b`}")
    assert not takes(document("javascript", "x = `a ", "`;\n", in_line=True), "` + `")
    assert takes(document("python", 'print("a ', ", name)\n", in_line=True), 'b"')


def test_the_samples_declare_nothing_twice(samples: Samples) -> None:
    for language, text in samples.values():
        line = text.find(b"\n", len(text) // 2)
        assert not Document(text, [(line, line)], language).check_fresh([b""])
