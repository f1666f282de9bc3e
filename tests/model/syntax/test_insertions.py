"""The shortest texts between the states of a grammar."""

import pytest

from lacuna_model.syntax import parse_table
from lacuna_model.syntax.insertions import Pieces, pieces_of
from lacuna_model.syntax.parse_table import START, ParseTable, Stack

from .drive import require


def stack_behind(table: ParseTable, words: str) -> Stack:
    stacks = [START]
    for word in words.split():
        symbol = table.grammar.id_for_node_kind(word, word in ("identifier", "type_identifier"))
        assert symbol is not None
        stacks = table.read(stacks, symbol)
    return stacks[0]


def made(name: str) -> tuple[ParseTable, Pieces]:
    table = parse_table.parse_table(require(name))
    assert table is not None
    return table, pieces_of(require(name), table)[1]


@pytest.mark.parametrize(
    ("name", "words", "rest"),
    [
        ("go", "func identifier", b"()"),
        ("go", "if", b"x{}"),
        ("javascript", "while", b"(x);"),
        ("java", "class identifier", b"{}"),
        ("rust", "fn identifier (", b")"),
        ("python", "identifier = (", b")"),
        ("c", "struct identifier {", b"}"),
    ],
)
def test_the_ending_of_a_state_is_the_shortest(name: str, words: str, rest: bytes) -> None:
    table, pieces = made(name)
    assert rest in [b"".join(ending.text) for ending in pieces.endings(stack_behind(table, words)[-1])]


@pytest.mark.parametrize("name", ["go", "javascript", "java", "c", "cpp", "typescript"])
def test_what_leads_from_a_state_to_another_is_read_there(name: str) -> None:
    """Also where a state is that of several symbols, since the tables are made as small as can be."""
    table, pieces = made(name)
    marks = {symbol for symbol in table.terminals if table.grammar.node_kind_for_id(symbol) in ("{", "(", "[")}
    closers = {"{": b"}", "(": b")", "[": b"]"}
    checked = 0
    for state in range(1, 400):
        for following in set(table._goes[state].values()):
            piece = pieces.between(state, following)
            if piece is None or not piece.text:
                continue
            firsts = [mark for mark in marks if table.grammar.node_kind_for_id(mark) == piece.text[0].decode()]
            if firsts:
                assert any(table.knows(state, first) for first in firsts)
                assert piece.text.count(closers[piece.text[0].decode()]) == piece.text.count(piece.text[0])
                checked += 1
    assert checked


@pytest.mark.parametrize(("name", "kind"), [("go", "source_file_token1"), ("c", "preproc_include_token2")])
def test_a_line_end_that_no_tree_shows_is_written_as_one(name: str, kind: str) -> None:
    table, _ = made(name)
    known = pieces_of(require(name), table)[0].known
    assert [one.text for one in known if table.grammar.node_kind_for_id(one.terminal) == kind] == [b"\n"]


def test_a_terminal_without_a_text_of_its_own_is_written_as_the_lexer_takes_it() -> None:
    table, _ = made("c")
    known = {table.grammar.node_kind_for_id(one.terminal): one.text for one in pieces_of(require("c"), table)[0].known}
    assert (known["identifier"], known["system_lib_string"], known["number_literal"]) == (b"x", b"<x>", b"0")
    assert "comment" not in known
