"""A suffix is read without its stack, and follows every stack from which its terminals can be read one by one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.syntax.conftest import DATA
from tests.model.syntax.drive import require

from lacuna_model.core import work
from lacuna_model.syntax import language_for
from lacuna_model.syntax.completion import suffix
from lacuna_model.syntax.completion.kept_parts import sound_stacks
from lacuna_model.syntax.completion.prefix import Prefix
from lacuna_model.syntax.completion.suffix import Followed, Suffix
from lacuna_model.syntax.lr.parse_table import END, START, ParseTable, Stack, Terminal, leaves, parse_table

MARKS = st.sampled_from(["[", "]", "{", "}", ",", "1"])
ATEND = Terminal(b"", ((END,),), on_new_line=True)
# Between any two tokens of these files the stack is known exactly.
FILES = ["Account.java", "cache.go", "queue.js", "vector.cpp", "shapes.ts", "stack.rs", "table.c"]


def table_of(name: str) -> ParseTable:
    table = parse_table(require(name))
    assert table is not None
    return table


def stacks_after(name: str, text: str) -> list[Stack]:
    return Prefix(require(name), table_of(name)).stacks(text.encode())


def suffix_of_text(name: str, whole: str, begin: int) -> Suffix:
    language, table = require(name), table_of(name)
    text = whole.encode()
    root = language.parser().parse(text).root_node
    return Suffix(table, Prefix(language, table).terminals.behind(text, root, begin, to_the_end=True))


@pytest.mark.parametrize("name", FILES)
def test_the_rest_of_a_file_follows_its_beginning(name: str) -> None:
    language = language_for(name)
    assert language is not None
    text = (DATA / name).read_text()
    reader = Prefix(language, table_of(language.name))
    root = language.parser().parse(text.encode()).root_node
    for leaf in list(leaves(root, 0))[::17]:
        behind = suffix_of_text(language.name, text, leaf.start_byte)
        stacks = reader.stacks(text.encode()[: leaf.start_byte])
        followed = Followed(behind)
        assert any(followed.has(stack) for stack in stacks), leaf


@settings(max_examples=100, deadline=None, database=None)
@given(st.lists(MARKS, max_size=7), st.lists(MARKS, max_size=7))
def test_a_suffix_follows_exactly_the_stacks_that_read_it(before: list[str], after: list[str]) -> None:
    """In JSON, which has no hidden terminals: whether reading its terminals one by one comes to the end."""
    table = table_of("json")
    numbers = {"1": next(one for one in table.terminals if table.grammar.node_kind_for_id(one) == "number")}
    symbols = [numbers.get(word) or table.grammar.id_for_node_kind(word, False) or 0 for word in [*before, *after]]
    stacks = [START]
    for symbol in symbols[: len(before)]:
        stacks = table.read(stacks, symbol)
    terminals = [
        Terminal(word.encode(), ((symbol,),)) for word, symbol in zip(after, symbols[len(before) :], strict=True)
    ]
    followed = Followed(Suffix(table, [*terminals, ATEND]))
    for stack in stacks:
        read = [stack]
        for symbol in symbols[len(before) :]:
            read = table.read(read, symbol)
        assert followed.has(stack) == any(table.shift(one, END) for one in read)


def test_a_reading_that_an_earlier_search_has_made_counts_as_new_work() -> None:
    behind = suffix_of_text("java", "class A { int f ( ) { } }", 22)
    (inside,) = stacks_after("java", "class A { int f ( ) {")
    spent = [work.spent()]
    for followed in (Followed(behind), Followed(behind)):
        assert followed.has(inside)
        spent.append(work.spent())
    assert spent[1] - spent[0] == spent[2] - spent[1] > 0
    assert followed.has(inside)
    assert work.spent() - spent[2] < spent[2] - spent[1]  # it is made already


def test_a_stack_with_other_brackets_is_refused() -> None:
    behind = suffix_of_text("java", "class A { int f ( ) { } }", 22)
    (inside,) = stacks_after("java", "class A { int f ( ) {")
    assert Followed(behind).has(inside)
    for text in ("class A {", "class A { int f ( ) { a (", "class A { int f ( ) { a"):
        assert not any(Followed(behind).has(stack) for stack in stacks_after("java", text))


def test_a_demand_below_the_bottom_of_a_stack_is_refused() -> None:
    behind = suffix_of_text("java", "class A { int f ( ) { } }", 22)
    (inside,) = stacks_after("java", "class A { int f ( ) {")
    assert not Followed(behind).has(inside, suffix.NOTHING_REDUCED._replace(below=len(inside)))


def test_a_long_suffix_is_read_only_up_to_the_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suffix, "REACH", 40)
    text = "f ( ) ; " * 100
    behind = suffix_of_text("javascript", text, 0)
    assert Followed(behind).has(START)


def test_a_deep_stack_is_followed_in_as_many_steps_as_the_suffix_ends_constructs() -> None:
    depth = 3000
    (deep,) = stacks_after("lua", "local a = " + "{" * depth)
    behind = Suffix(table_of("lua"), [Terminal(b"}", ((table_of("lua").grammar.id_for_node_kind("}", False) or 0,),))])
    assert Followed(behind).has(deep)
    assert len(behind._known) < 20


def test_stacks_that_cannot_read_on_are_not_among_those_of_a_valid_text() -> None:
    text = "package a\nfunc f() { x := len(t.u) }\n"
    root = require("go").parser().parse(text.encode()).root_node
    symbols, table = [leaf.grammar_id for leaf in leaves(root, 0)], table_of("go")
    found = sound_stacks(table, frozenset({START}), symbols)
    plain = [[START]]
    for symbol in symbols:
        plain.append(table.read(plain[-1], symbol))
    for place, symbol in enumerate(symbols):
        for stack in found[place]:
            assert not found[place + 1].isdisjoint(table.read([stack], symbol))
    assert sum(map(len, plain)) > sum(map(len, found))


def test_brackets_that_are_closed_but_not_reduced_are_not_open() -> None:
    table = table_of("java")
    for text, brackets in (("class A { int f ( ) { a (", "{{("), ("class A { int f ( ) { a ( )", "{{")):
        assert brackets in {table.brackets(stack) for stack in stacks_after("java", text)}
