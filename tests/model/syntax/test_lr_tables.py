"""The LR tables of all grammars, as they are read from the memory of their wheels."""

import pytest

from lacuna_model.syntax import LANGUAGES, lr_stacks
from lacuna_model.syntax.lr_stacks import END, ParseTable
from lacuna_model.syntax.lr_tables import SHIFT

from .drive import require


@pytest.mark.parametrize("name", [language.name for language in LANGUAGES])
def test_a_table_agrees_with_the_bindings_of_tree_sitter(name: str) -> None:
    table = ParseTable(require(name))
    for state in range(1, table.grammar.parse_state_count, max(table.grammar.parse_state_count // 50, 1)):
        listed = set(table._does[state]) - {END}
        listing = table.grammar.lookahead_iterator(state)
        assert listing is not None
        assert listed == set(listing.symbols()) & set(table.terminals)
        for symbol in listed:
            actions = table._does[state][symbol]
            shifted = [one.to for one in actions if one.kind == SHIFT and not one.extra]
            followed = table.grammar.next_state(state, symbol)
            assert not followed or shifted == [] or followed in shifted


@pytest.mark.parametrize(("name", "version"), [("OLDEST_ABI", 99), ("NEWEST_ABI", 1)])
def test_tables_of_another_layout_are_not_read(monkeypatch: pytest.MonkeyPatch, name: str, version: int) -> None:
    unread = lr_stacks.parse_table.__wrapped__
    assert unread(require("json")) is not None
    monkeypatch.setattr(lr_stacks, name, version)
    assert unread(require("json")) is None
