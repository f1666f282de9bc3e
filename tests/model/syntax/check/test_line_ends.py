"""Line ends that Go reads as semicolons are found where none is allowed, and never in a valid text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.syntax.drive import require
from tree_sitter import Parser, Tree

from lacuna_model.syntax.check.placement import line_end_faults

IN_FUNCTION = "package a\n\nfunc f() {{\n\t{}\n}}\n"
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


def parsed(text: bytes) -> Tree:
    language = require("go")
    return Parser(language.grammar()).parse(text)


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", " // b\n", "\n\n\t// b\n"])
def test_a_line_end_at_the_mark_is_a_fault(statement: str, line_end: str) -> None:
    sound = IN_FUNCTION.format(statement.replace("|", "")).encode()
    assert not line_end_faults(parsed(sound), sound, None)
    text = IN_FUNCTION.format(statement.replace("|", line_end)).encode()
    found = line_end_faults(parsed(text), text, None)
    assert [text[fault.start : fault.start + 1].decode() for fault in found] == [
        statement.split("|", maxsplit=1)[0].rstrip()[-1]
    ]


@given(lines=st.lists(st.sampled_from(["x()", "if x {", "}", "for x {", "y := 1", "}()", "func() {"]), max_size=8))
def test_lines_that_parse_with_semicolons_have_no_fault_without_them(lines: list[str]) -> None:
    text = IN_FUNCTION.format(";\n".join(lines)).encode()
    tree = parsed(text)
    if not tree.root_node.has_error:
        without = text.replace(b";\n", b"\n")
        assert not line_end_faults(parsed(without), without, None)


def test_a_fault_is_found_from_either_side_of_the_line_end() -> None:
    text = IN_FUNCTION.format("g(1,\n\t\t2\n\n\t)").encode()
    last, after = text.index(b"2"), text.index(b"\n\n\t)") + 3
    for spans in (None, [(last, last)], [(last, last + 1)], [(after, after)], [(0, 3), (after, after + 1)]):
        assert [(fault.start, fault.end) for fault in line_end_faults(parsed(text), text, spans)] == [(last, after)]
    assert not line_end_faults(parsed(text), text, [(0, 3)])
