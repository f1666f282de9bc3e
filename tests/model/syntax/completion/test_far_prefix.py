"""The far part of a prefix is read in whole subtrees, which gives the same stacks as reading its leaves."""

from collections.abc import Iterable

import pytest
from tests.model.syntax.conftest import DATA
from tests.model.syntax.drive import Countdown
from tree_sitter import Node, Parser

from lacuna_model.syntax import Language, language_for
from lacuna_model.syntax.completion import far_prefix as front
from lacuna_model.syntax.completion.far_prefix import FarPrefix
from lacuna_model.syntax.completion.readings import PrefixReader
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.lr.parse_table import START, ParseTable, Stack, Terminal, leaves, parse_table

# Without Python: its blocks can end in more ways than stacks are kept, and each reading keeps different ones.
FILES = [
    "Account.java",
    "cache.go",
    "queue.js",
    "vector.cpp",
    "list.lua",
    "shapes.ts",
    "stack.rs",
    "table.c",
    "settings.json",
]


@pytest.fixture(autouse=True)
def all_is_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "NEAR", 100)
    monkeypatch.setattr(front, "STEP", 50)


def known(path: str) -> tuple[Language, ParseTable]:
    language = language_for(path)
    assert language is not None
    table = parse_table(language)
    assert table is not None
    return language, table


def terminal(leaf: Node, on_new_line: bool) -> Terminal:
    return Terminal(leaf.text or b"", ((leaf.grammar_id,),), on_new_line)


def terminals(text: bytes, root: Node, begin: int) -> Iterable[Terminal]:
    end = begin
    for leaf in leaves(root, begin):
        yield terminal(leaf, b"\n" in text[end : leaf.start_byte])
        end = leaf.end_byte


def read(text: bytes, language: Language, table: ParseTable, far: FarPrefix | None) -> list[Stack]:
    root = Parser(language.grammar()).parse(text).root_node
    stacks, border = far.stacks(text, root, terminal) if far is not None else ([START], 0)
    return PrefixReader(table).stacks(terminals(text, root, border), stacks)


@pytest.mark.parametrize("name", FILES)
def test_the_stacks_equal_those_of_reading_every_terminal(name: str) -> None:
    language, table = known(name)
    whole = (DATA / name).read_bytes()
    kept = FarPrefix(table, Clock())
    cuts = [place for place in range(0, len(whole), 97) if whole[place : place + 1].isspace()]
    assert cuts
    for cut in cuts:
        text = whole[:cut]
        expected = set(read(text, language, table, None))
        assert set(read(text, language, table, kept)) == expected, cut
        assert set(read(text, language, table, FarPrefix(table, Clock()))) == expected, cut


def test_an_interrupted_reading_continues_where_it_stopped() -> None:
    language, table = known("queue.js")
    text = (DATA / "queue.js").read_bytes()[:1000]
    root = Parser(language.grammar()).parse(text).root_node

    clock = Countdown(left=5)
    reader = FarPrefix(table, clock)
    began = [reader.stacks(text, root, terminal)]
    while began[-1][1] == 0:
        clock.left = 5
        began.append(reader.stacks(text, root, terminal))
        assert len(began) < 100
    assert len(began) > 2
    assert began[-1] == FarPrefix(table, Clock()).stacks(text, root, terminal)
