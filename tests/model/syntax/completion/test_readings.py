"""Readings of prefixes that begin alike: a reader keeps what it has read."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.syntax.drive import require
from tree_sitter import Parser

from lacuna_model.syntax.completion.readings import NOTHING_REDUCED, PrefixReader, suffix_reader
from lacuna_model.syntax.lr.parse_table import END, START, Terminal, leaves, parse_table

LANGUAGE = require("javascript")
TABLE = parse_table(LANGUAGE)
assert TABLE is not None
PIECES = st.sampled_from(["f(a, b)", "{", "}", "if (a)", ";", "\n", "x = y", "[1, 2]", "=> "])


def terminals(text: str) -> list[Terminal]:
    root = Parser(LANGUAGE.grammar()).parse(text.encode()).root_node
    return [Terminal(leaf.text or b"", ((leaf.grammar_id,),)) for leaf in leaves(root, 0)]


@settings(max_examples=50, deadline=None, database=None)
@given(st.lists(st.lists(PIECES, max_size=12), max_size=5), st.lists(PIECES, max_size=8))
def test_earlier_readings_do_not_change_the_stacks(earlier: list[list[str]], last: list[str]) -> None:
    assert TABLE is not None
    reader = PrefixReader(TABLE)
    for pieces in [*earlier, last]:
        text = terminals("".join(pieces))
        assert reader.stacks(text) == PrefixReader(TABLE).stacks(text)


def test_an_empty_text_gives_the_start_stack() -> None:
    assert TABLE is not None
    reader = PrefixReader(TABLE)
    reader.stacks(terminals("f();"))
    assert reader.stacks([]) == [START]


def test_a_suffix_meets_a_stack_whose_open_constructs_it_closes() -> None:
    assert TABLE is not None
    behind = suffix_reader(TABLE, (*terminals("};")[:1], Terminal(b"", ((END,),), on_new_line=True)))
    (opened,) = PrefixReader(TABLE).stacks(terminals("if (a) { f();"))
    assert behind.meets(opened, NOTHING_REDUCED)
    assert not behind.meets(START, NOTHING_REDUCED)
