"""A prefix is read in whole subtrees and from where it differs from the one before, with the same stacks as afresh."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.syntax.conftest import DATA

from lacuna_model.syntax import Language, language_for
from lacuna_model.syntax.lr import prefix
from lacuna_model.syntax.lr.parse_table import ParseTable, parse_table
from lacuna_model.syntax.lr.prefix import Prefix

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
    leaf_by_leaf = [set(Prefix(language, table).read(whole[:cut])[-1].stacks) for cut in cuts]
    monkeypatch.setattr(prefix, "NEAR", 100)
    kept = Prefix(language, table)
    for cut, expected in zip(cuts, leaf_by_leaf, strict=True):
        assert set(kept.read(whole[:cut])[-1].stacks) == expected, cut
        assert set(Prefix(language, table).read(whole[:cut])[-1].stacks) == expected, cut


@settings(max_examples=50, deadline=None, database=None)
@given(st.lists(st.lists(PIECES, max_size=12), max_size=5), st.lists(PIECES, max_size=8))
def test_earlier_readings_do_not_change_the_stacks(earlier: list[list[str]], last: list[str]) -> None:
    language, table = known("a.js")
    reader = Prefix(language, table)
    for pieces in [*earlier, last]:
        text = "".join(pieces).encode()
        assert reader.read(text)[-1].stacks == Prefix(language, table).read(text)[-1].stacks
