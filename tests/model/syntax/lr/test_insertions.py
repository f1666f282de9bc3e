"""The shortest texts between the states of a grammar."""

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax.lr import parse_table
from lacuna_model.syntax.lr.insertions import Pieces
from lacuna_model.syntax.lr.parse_table import START, ParseTable, Stack
from lacuna_model.syntax.lr.piece_cache import pieces_of


def stack_after(table: ParseTable, words: str) -> Stack:
    stacks = [START]
    for word in words.split():
        symbol = table.grammar.id_for_node_kind(word, word in ("identifier", "type_identifier"))
        assert symbol is not None
        stacks = table.read(stacks, symbol)
    return stacks[0]


def table_and_pieces(name: str) -> tuple[ParseTable, Pieces]:
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
def test_the_shortest_ending_of_a_state_is_found(name: str, words: str, rest: bytes) -> None:
    table, pieces = table_and_pieces(name)
    assert rest in [b"".join(ending.text) for ending in pieces.endings(stack_after(table, words)[-1])]


@pytest.mark.parametrize("name", ["go", "javascript", "java", "c", "cpp", "typescript"])
def test_the_text_between_two_states_can_be_read_in_the_first(name: str) -> None:
    """This also holds for a state that several symbols share, because the tables are minimized."""
    table, pieces = table_and_pieces(name)
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
