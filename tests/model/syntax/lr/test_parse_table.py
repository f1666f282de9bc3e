"""The LR tables of the grammars of the sample files, and parse stacks driven by them."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.model.syntax.drive import leaves, require
from tree_sitter import Parser, Tree

from lacuna_model.syntax import LANGUAGES, Language
from lacuna_model.syntax.lr import parse_table
from lacuna_model.syntax.lr.grammar_tables import SHIFT
from lacuna_model.syntax.lr.parse_table import END, START, ParseTable, Stack

Samples = dict[str, tuple[Language, bytes]]
NAMES = [language.name for language in LANGUAGES]
BRACES = ["javascript", "typescript", "go", "rust", "java", "c", "cpp"]
PROPERTY = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)


def table_of(language: Language) -> ParseTable:
    table = parse_table.parse_table(language)
    assert table is not None
    return table


def sound(samples: Samples, name: str) -> tuple[ParseTable, Tree, bytes]:
    """The table of a language, and its sample file parsed."""
    language, text = samples[name]
    tree = Parser(language.grammar()).parse(text)
    assert not tree.root_node.has_error
    return table_of(language), tree, text


def terminal(table: ParseTable, text: str) -> int:
    """The terminal of a keyword or a mark."""
    symbol = table.grammar.id_for_node_kind(text, False)
    assert symbol is not None
    assert symbol in table.terminals
    return symbol


def after_leaves(table: ParseTable, tree: Tree, text: bytes, end: int) -> list[Stack]:
    """The stacks after the leaves before an offset, read leaf by leaf."""
    stacks, last = [START], 0
    for leaf in leaves(tree.root_node, 0):
        if leaf.end_byte > end:
            break
        stacks = table.read(stacks, leaf.grammar_id, on_new_line=b"\n" in text[last : leaf.start_byte])
        last = leaf.end_byte
    return stacks


@pytest.mark.parametrize("name", BRACES)
def test_reading_the_leaves_of_a_file_reaches_its_end(samples: Samples, name: str) -> None:
    """In languages with braces only: in others the grammar's own scanner emits terminals that no leaf shows.

    These are the ends of blocks in Python, parts of strings in Lua and TOML, and columns in YAML.
    """
    table, tree, text = sound(samples, name)
    stacks = after_leaves(table, tree, text, len(text))
    assert any(table.shift(stack, END) for stack in stacks)
    unfinished = next(leaves(tree.root_node, 0)).end_byte
    assert not any(table.shift(stack, END) for stack in after_leaves(table, tree, text, unfinished))


@pytest.mark.parametrize("name", NAMES)
def test_a_table_agrees_with_the_bindings_of_tree_sitter(name: str) -> None:
    table = table_of(require(name))
    for state in range(1, table.grammar.parse_state_count, max(table.grammar.parse_state_count // 50, 1)):
        listed = set(table._does[state]) - {END}
        listing = table.grammar.lookahead_iterator(state)
        assert listing is not None
        known = set(listing.symbols()) & set(table.terminals)
        assert listed == known
        for symbol in listed:
            actions = table._does[state][symbol]
            shifted = [one.to for one in actions if one.kind == SHIFT and not one.extra]
            followed = table.grammar.next_state(state, symbol)
            assert not followed or shifted == [] or followed in shifted


@pytest.mark.parametrize(
    ("name", "words", "wrong"),
    [
        ("go", ["package"], "package"),
        ("rust", ["fn"], "fn"),
        ("c", ["struct"], "struct"),
        ("javascript", ["{"], ")"),
        ("java", ["class"], "("),
        ("cpp", ["namespace"], "}"),
        ("typescript", ["import", "{"], "import"),
    ],
)
def test_a_terminal_that_cannot_follow_gives_no_stack(name: str, words: list[str], wrong: str) -> None:
    table = table_of(require(name))
    stacks = [START]
    for word in words:
        stacks = table.read(stacks, terminal(table, word))
        assert stacks
    assert table.read(stacks, terminal(table, wrong)) == []
    assert table.read([], terminal(table, wrong)) == []


@PROPERTY
@given(known=st.lists(st.sampled_from(["[", "]", ",", "{", "}"]), max_size=8))
def test_a_text_is_read_to_its_end_exactly_if_it_parses(known: list[str]) -> None:
    """In JSON, where every terminal is a leaf."""
    table = table_of(require("json"))
    stacks = [START]
    for word in known:
        stacks = table.read(stacks, terminal(table, word))
    text = " ".join(known).encode()
    assert any(table.shift(stack, END) for stack in stacks) is not Parser(table.grammar).parse(text).root_node.has_error


@pytest.mark.parametrize(("name", "version"), [("OLDEST_ABI", 99), ("NEWEST_ABI", 1)])
def test_tables_of_another_layout_are_not_read(monkeypatch: pytest.MonkeyPatch, name: str, version: int) -> None:
    unread = parse_table.parse_table.__wrapped__
    assert unread(require("json")) is not None
    monkeypatch.setattr(parse_table, name, version)
    assert unread(require("json")) is None
