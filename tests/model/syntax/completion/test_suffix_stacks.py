"""The stacks from which the suffix of a gap can be read."""

from tests.model.syntax.drive import require
from tree_sitter import Parser

from lacuna_model.syntax.completion.suffix_stacks import REACH, SuffixStacks, sound_stacks
from lacuna_model.syntax.lr import parse_table
from lacuna_model.syntax.lr.parse_table import START, ParseTable, Stack, leaves


def table_of(name: str) -> ParseTable:
    table = parse_table.parse_table(require(name))
    assert table is not None
    return table


def terminals(name: str, text: str) -> list[int]:
    return [leaf.grammar_id for leaf in leaves(Parser(require(name).grammar()).parse(text.encode()).root_node, 0)]


def stack_after(name: str, text: str, whole: str) -> Stack:
    """The stack after the beginning of a text."""
    stacks = [START]
    for terminal in terminals(name, whole)[: len(text.split())]:
        stacks = table_of(name).read(stacks, terminal)
    (stack,) = stacks
    return stack


INSIDE = "class A { int f ( ) {"
WHOLE = INSIDE + " a ( ) ; } }"


def stacks_of_suffix(text: str = "} }") -> SuffixStacks:
    marks = [terminals("java", WHOLE)[-1]] * len(text.split())
    return SuffixStacks(table_of("java"), marks, frozenset({stack_after("java", INSIDE, WHOLE)}))


def test_the_stack_of_the_valid_text_is_accepted_without_reading() -> None:
    here = stacks_of_suffix()
    assert here.accepts(stack_after("java", INSIDE, WHOLE))
    assert here.read == 0


def test_another_stack_is_read_until_it_equals_a_known_one() -> None:
    here = stacks_of_suffix()
    assert here.accepts(stack_after("java", INSIDE + " a ( ) ;", WHOLE))
    assert 0 < here.read < 3
    read = here.read
    assert here.accepts(stack_after("java", INSIDE + " a ( ) ;", WHOLE))
    assert here.read == read


def test_a_stack_with_other_brackets_is_refused_without_reading() -> None:
    here = stacks_of_suffix()
    for beginning in ("class A {", INSIDE + " a ("):
        assert not here.accepts(stack_after("java", beginning, WHOLE))
    assert here.read == 0


def test_a_stack_that_cannot_read_on_is_refused() -> None:
    assert not stacks_of_suffix().accepts(stack_after("java", INSIDE + " a", WHOLE))


def test_a_long_suffix_is_read_only_up_to_the_reach() -> None:
    text = "f ( ) ; " * REACH
    symbols = terminals("javascript", text)[:REACH]
    here = SuffixStacks(table_of("javascript"), symbols, frozenset({START}))
    one, other = (stack_after("javascript", "f ( ) ; " * count, text) for count in (1, 2))
    assert here.accepts(one)
    assert here.accepts(other)
    assert here.read <= 2 * REACH


def test_stacks_that_cannot_read_on_are_not_among_those_of_a_valid_text() -> None:
    text = "package a\nfunc f() { x := len(t.u) }\n"
    symbols = terminals("go", text)
    found = sound_stacks(table_of("go"), frozenset({START}), symbols)
    plain = [[START]]
    for symbol in symbols:
        plain.append(table_of("go").read(plain[-1], symbol))
    for place, symbol in enumerate(symbols):
        for stack in found[place]:
            assert not found[place + 1].isdisjoint(table_of("go").read([stack], symbol))
    assert sum(map(len, plain)) > sum(map(len, found))


def test_brackets_that_are_closed_but_not_reduced_are_not_open() -> None:
    table = table_of("java")
    assert table.brackets(stack_after("java", INSIDE + " a (", WHOLE)) == "{{("
    assert table.brackets(stack_after("java", INSIDE + " a ( )", WHOLE)) == "{{"
