"""A prefix is read in whole subtrees and from where it differs from the one before, with the same stacks as afresh."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.syntax.conftest import DATA
from tests.model.syntax.drive import Countdown, require

from lacuna_model.syntax import Language, language_for
from lacuna_model.syntax.completion import prefix
from lacuna_model.syntax.completion.prefix import Prefix, token_start
from lacuna_model.syntax.lr.parse_table import START, ParseTable, leaves, parse_table

# Without Python: its blocks can end in more ways than stacks are kept, and each reading keeps different ones.
FILES = ["Account.java", "cache.go", "queue.js", "vector.cpp", "list.lua", "shapes.ts", "stack.rs", "table.c"]
PIECES = st.sampled_from(["f(a, b)", "{", "}", "if (a)", ";", "\n", "x = y", "[1, 2]", "=> ", "/* ", " */", '"'])


def known(path: str) -> tuple[Language, ParseTable]:
    language = language_for(path)
    assert language is not None
    table = parse_table(language)
    assert table is not None
    return language, table


@pytest.mark.parametrize("name", FILES)
def test_whole_subtrees_give_the_stacks_of_their_leaves(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    language, table = known(name)
    whole = (DATA / name).read_bytes()
    cuts = [place for place in range(0, len(whole), 97) if whole[place : place + 1].isspace()]
    assert cuts
    leaf_by_leaf = [set(Prefix(language, table).stacks(whole[:cut])) for cut in cuts]
    monkeypatch.setattr(prefix, "NEAR", 100)
    kept = Prefix(language, table)
    for cut, expected in zip(cuts, leaf_by_leaf, strict=True):
        assert set(kept.stacks(whole[:cut])) == expected, cut
        assert set(Prefix(language, table).stacks(whole[:cut])) == expected, cut


@pytest.mark.parametrize("name", FILES)
def test_a_sound_tree_gives_the_stacks_that_reading_its_text_gives(name: str) -> None:
    language, table = known(name)
    whole = (DATA / name).read_bytes()
    tree = language.parser().parse(whole)
    for leaf in list(leaves(tree.root_node, 0))[::23]:
        place = leaf.start_byte
        started = Prefix(language, table, sound=True)
        assert started.start(whole, tree, token_start(tree, place))
        assert not set(started.stacks(whole[:place])).isdisjoint(Prefix(language, table).stacks(whole[:place])), leaf


@settings(max_examples=50, deadline=None, database=None)
@given(st.lists(st.lists(PIECES, max_size=12), max_size=5), st.lists(PIECES, max_size=8))
def test_earlier_readings_do_not_change_the_stacks(earlier: list[list[str]], last: list[str]) -> None:
    language, table = known("a.js")
    reader = Prefix(language, table)
    for pieces in [*earlier, last]:
        text = "".join(pieces).encode()
        assert reader.stacks(text) == Prefix(language, table).stacks(text)


def test_an_empty_text_gives_the_start_stack() -> None:
    reader = Prefix(*known("a.js"))
    reader.stacks(b"f();")
    assert reader.stacks(b"") == [START]


def test_an_interrupted_reading_continues_where_it_stopped() -> None:
    language, table = known("queue.js")
    text = (DATA / "queue.js").read_bytes()[:1000]
    clock = Countdown(left=5)
    reader = Prefix(language, table, clock)
    calls = 1
    while not (found := reader.stacks(text)):
        clock.left, calls = 5, calls + 1
        assert calls < 200
    assert calls > 2
    assert found == Prefix(language, table).stacks(text)


def test_an_arrow_is_one_terminal_even_where_the_parser_splits_it() -> None:
    language, table = require("rust"), known("a.rs")[1]
    text = b"        B(c) => d.push(c),\n        E => {\n            h();\n        }\n    }\n}\n"
    found = Prefix(language, table).terminals.behind(text, language.parser().parse(text).root_node, 0, to_the_end=True)
    assert b"=>" in [terminal.word for terminal in found]
