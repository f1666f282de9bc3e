"""Fills that the grammar accepts and the language does not are refused; valid fills never are."""

import pytest
from tests.model.syntax.cases import Case, load
from tests.model.syntax.drive import require
from tree_sitter import Parser

from lacuna_model.languages.registry import LANGUAGES
from lacuna_model.syntax import Language
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.check.placement import placement_in

MISPLACED = load("misplaced")
IN_PLACE = load("in_place")


def gap_of(case: Case) -> Document:
    return document(case.language, case.before, case.after)


def document(name: str, before: str, after: str) -> Document:
    return Document((before + after).encode(), [(len(before), len(before))], require(name))


@pytest.mark.parametrize("case", MISPLACED)
def test_a_misplaced_fill_is_refused(case: Case) -> None:
    for fill in case.refuses:
        assert not gap_of(case).check([fill.encode()]).valid
        assert not gap_of(case).check_fresh([fill.encode()]).valid


@pytest.mark.parametrize("case", IN_PLACE)
def test_a_fill_in_a_valid_place_is_accepted(case: Case) -> None:
    for fill in case.takes:
        assert gap_of(case).check([fill.encode()]).valid
        assert gap_of(case).check_fresh([fill.encode()]).valid


@pytest.mark.parametrize("name", [language.name for language in LANGUAGES if language.rules])
def test_samples_have_no_misplaced_node(samples: dict[str, tuple[Language, bytes]], name: str) -> None:
    language, text = samples[name]
    placement = placement_in(language)
    assert placement is not None
    tree = Parser(language.grammar()).parse(text)
    assert not placement.strays(tree) | placement.reserved_names(tree, text, [(0, len(text))])
    assert not placement.line_ends(tree, text)


def test_a_node_that_only_the_gap_misplaces_is_a_fault() -> None:
    own = document("rust", "use", "fmt;\n\nfn f() {}\n")
    assert not own.check([b""]).valid
    assert not own.check_fresh([b""]).valid
    assert own.check([b" "]).valid


def test_statements_after_a_gap_are_misplaced_until_a_fill_restores_their_function() -> None:
    before, after = b"namespace a {\nint b;\n", b"\n  while (b) c();\n  return 1;\n}\n"
    places = [(len(before), len(before)), (len(before + after), len(before + after))]
    own = Document(before + after + b"\n}\n", places, require("cpp"))
    assert own.check_fresh([b"int f(int b) {", b""]).valid
    assert not own.check_fresh([b"int f(int b);", b"namespace d {"]).valid


def test_a_statement_is_not_misplaced_if_the_text_has_one_in_such_a_place_too() -> None:
    other = "int unrelated_%d;\n" * 200 % tuple(range(200))
    for far, valid in (("if (x) y();\n", True), ("int x;\n", False)):
        own = document("c", far + other, "\n" + other)
        assert own.check([b"if (z) y();"]).valid == valid
        assert own.check_fresh([b"if (z) y();"]).valid == valid


def test_words_after_a_fill_are_checked_too() -> None:
    own = document("java", "class A {\n  ", "\n\n  public int x;\n}\n")
    assert own.check([b"int y;"]).valid
    assert not own.check([b"int"]).valid


@pytest.mark.parametrize(
    ("language", "before", "after", "fill"),
    [
        ("javascript", "open('a', , b);\nrun('c", "\nrun('d', 'e');\n", "');"),
        (
            "java",
            "class A {\n  int s(Object o) { return switch (o) { default -> 0; }; }\n  int a ",
            "\n  int b;\n}\n",
            "= 1;",
        ),
    ],
)
def test_what_is_misplaced_without_the_gaps_line_was_so_before(
    language: str, before: str, after: str, fill: str
) -> None:
    own = document(language, before, after)
    assert own.check([fill.encode()]).valid
    assert own.check_fresh([fill.encode()]).valid
