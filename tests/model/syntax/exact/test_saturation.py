"""The saturation agrees with brute force, which tries every short text between a prefix and a suffix."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.syntax.drive import require

from lacuna_model.syntax.exact.completable import Completions, Start
from lacuna_model.syntax.exact.saturation import Saturation
from lacuna_model.syntax.exact.suffix_reader import SuffixReader
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.lr.parse_table import END, START, ParseTable, Stack, Terminal, parse_table
from lacuna_model.syntax.lr.piece_cache import pieces_of, ways_of

MARKS = ("[", "]", "{", "}", ",", ":", "null")
LONGEST = 3  # terminals of a text that brute force tries

JSON = require("json")
words = st.sampled_from((*MARKS, "1"))


@cache
def table() -> ParseTable:
    found = parse_table(JSON)
    assert found is not None
    return found


@cache
def symbol(word: str) -> int:
    known = {name: table().grammar.id_for_node_kind(name, False) for name in MARKS[:-1]}
    known |= {
        "null": table().grammar.id_for_node_kind("null", True),
        "1": table().grammar.id_for_node_kind("number", True),
    }
    found = known[word]
    assert found is not None
    return found


def read(stacks: Sequence[Stack], written: Sequence[str]) -> list[Stack]:
    stacks = list(stacks)
    for word in written:
        stacks = [after for stack in stacks for after in table().shift(stack, symbol(word))]
    return stacks


def is_whole(stacks: Sequence[Stack]) -> bool:
    return any(table().shift(stack, END) for stack in stacks)


def between(prefix: Sequence[str], suffix: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The texts of at most LONGEST terminals between a prefix and a suffix."""
    front = read([START], prefix)
    for length in range(LONGEST + 1):
        yield from (text for text in product((*MARKS, "1"), repeat=length) if is_whole(read(front, (*text, *suffix))))


def found(prefix: Sequence[str], suffix: Sequence[str]) -> Iterator[tuple[bytes, ...]]:
    """The texts that the saturation finds."""
    terminals = [Terminal(word.encode(), ((symbol(word),),)) for word in suffix]
    reader = SuffixReader(table(), [*terminals, Terminal(b"", ((END,),))], frozenset())
    saturation = Saturation(reader, ways_of(JSON, table()).cheapest)
    starts = [Start(0.0, stack) for stack in read([START], prefix)]
    return iter(Completions(table(), pieces_of(JSON, table())[1], saturation, starts, Clock()))


@given(st.lists(words, max_size=6), st.lists(words, max_size=5))
@settings(max_examples=60, deadline=None)
def test_there_is_a_completion_exactly_where_brute_force_or_a_longer_text_finds_one(
    prefix: list[str], suffix: list[str]
) -> None:
    completion = next(found(prefix, suffix), None)
    assert completion is not None or next(between(prefix, suffix), None) is None
    if completion is not None:
        written = ["1" if text.isdigit() else text.decode() for text in completion]
        assert is_whole(read(read([START], prefix), [*written, *suffix]))


@given(st.lists(words, min_size=1, max_size=14), st.data())
@settings(max_examples=60, deadline=None)
def test_what_was_cut_out_of_a_whole_text_can_be_completed_after_any_part_of_it(
    text: list[str], data: st.DataObject
) -> None:
    whole = ["[", *(word for word in text if word in ("null", "1")), "]"]
    whole = [part for word in whole for part in ((word, ",") if word in ("null", "1") else (word,))]
    whole = [word for place, word in enumerate(whole) if not (word == "," and whole[place + 1] == "]")]
    assert is_whole(read([START], whole))
    begin = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(begin, len(whole)))
    for place in range(begin, stop + 1):
        assert next(found(whole[:place], whole[stop:]), None) is not None


def test_the_cheapest_completion_comes_first() -> None:
    assert next(found(["[", "1"], [])) == (b"]",)
    assert next(found(["{"], ["}"])) == ()
    assert len(next(found([], ["]", "]"]))) == 2


def test_a_prefix_that_no_text_completes_has_no_completion() -> None:
    assert next(found(["[", "1"], ["}"]), None) is not None  # a gap may open what the suffix closes
    assert next(found(["1", "1"], []), None) is None or is_whole(read([START], ["1", "1"]))
    assert next(found(["]"], []), None) is None
