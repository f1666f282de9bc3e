"""The grammar's own lexer tells which terminal a text is in a state."""

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax.lr import parse_table
from lacuna_model.syntax.lr.parse_table import START, ParseTable


def table_of(name: str) -> ParseTable:
    table = parse_table.parse_table(require(name))
    assert table is not None
    return table


@pytest.mark.parametrize(
    ("name", "before", "text", "kind"),
    [
        ("c", ["#include"], b"<a.h>", "system_lib_string"),
        ("c", ["#include"], b"x", "identifier"),
        ("c", [], b"int", "identifier"),
        ("go", ["package"], b"a", "identifier"),
        ("javascript", ["("], b"0x1F", "number"),
        ("javascript", ["("], "\u00e9t\u00e9".encode(), "identifier"),
        ("rust", ["fn"], b"x_1", "identifier"),
        ("python", ["("], b"1.5", "float"),
    ],
)
def test_a_text_is_one_terminal(name: str, before: list[str], text: bytes, kind: str) -> None:
    table, stacks = table_of(name), [START]
    for mark in before:
        symbol = table.grammar.id_for_node_kind(mark, False)
        assert symbol is not None
        stacks = table.read(stacks, symbol)
    terminal = table.token(stacks[0][-1], text)
    assert terminal is not None
    assert table.grammar.node_kind_for_id(terminal) == kind


@pytest.mark.parametrize(("name", "text"), [("c", b"a b"), ("c", b"1a)"), ("javascript", b"a+"), ("go", b"\xff\xff")])
def test_a_text_that_is_not_exactly_one_terminal_gives_none(name: str, text: bytes) -> None:
    assert table_of(name).token(START[-1], text) is None
