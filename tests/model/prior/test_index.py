from collections import Counter
from collections.abc import Collection

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lacuna_model.prior.index import (
    MAX_MATCH,
    MAX_PLACES,
    Index,
    IndexedDocuments,
    Match,
    Segment,
    longest_match,
    token_type,
)

NAMES = st.sampled_from("abcde")
TOKENS = st.lists(st.integers(0, 2), max_size=8)


class Edits(RuleBasedStateMachine):
    """After any sequence of edits an index gives the answers of one block of all documents."""

    @initialize(recent=st.sampled_from([0, 4, 12, 1000]), most=st.sampled_from([8, 20, 1000]))
    def begin(self, recent: int, most: int) -> None:
        self.index = Index[str](100, recent, most)
        self.files: dict[str, list[int]] = {}

    @rule(changes=st.dictionaries(NAMES, st.none() | TOKENS))
    def update(self, changes: dict[str, list[int] | None]) -> None:
        self.index.update(changes)
        kept = {name: tokens for name, tokens in self.files.items() if name not in changes}
        self.files = kept | {name: tokens for name, tokens in changes.items() if tokens is not None}

    @rule()
    def merge(self) -> None:
        self.index.merge()

    @invariant()
    def answers_as_one_block(self) -> None:
        assert self.index.names == self.files.keys()
        for without in ((), ("a",)):
            fresh = [segment(self.files, without, 100)]
            for context in ([0], [1, 2], [2, 0, 1], [1, 1, 0, 2]):
                got, wanted = (longest_match(each, context) for each in (self.index.segments(without), fresh))
                assert seen(got) == seen(wanted)


Edits.TestCase.settings = settings(max_examples=20, stateful_step_count=10, deadline=None)
TestEdits = Edits.TestCase


VOCABULARIES = [49_152, 151_936]  # tokens of 16 and of 32 bits
RUNS = st.lists(st.integers(0, 3), max_size=14)
FILES = st.dictionaries(st.sampled_from("abcdef"), RUNS, max_size=4)


def segment(files: dict[str, list[int]], without: Collection[str] = (), vocab_size: int = 49_152) -> Segment:
    return Segment.of(IndexedDocuments.index(files, token_type(vocab_size)), without)


def expected(files: list[list[int]], context: list[int]) -> tuple[int, Counter[int]]:
    """The infinity-gram by definition: the longest end of the context that some token follows, and those tokens."""
    for length in range(min(len(context), MAX_MATCH), 0, -1):
        run = context[-length:]
        found = [f[i + length] for f in files for i in range(len(f) - length) if f[i : i + length] == run]
        if found:
            return length, Counter(found)
    return 0, Counter()


def seen(match: Match | None) -> tuple[int, Counter[int]]:
    return (match.length, Counter(match.tokens().tolist())) if match else (0, Counter())


@given(FILES, FILES, st.sets(st.sampled_from("abcdef")), RUNS, st.sampled_from(VOCABULARIES))
def test_the_longest_match_over_all_segments_is_found(
    rest: dict[str, list[int]], recent: dict[str, list[int]], hidden: set[str], context: list[int], vocab_size: int
) -> None:
    segments = [segment(rest, hidden, vocab_size), segment(recent, (), vocab_size)]
    files = [*(tokens for name, tokens in rest.items() if name not in hidden), *recent.values()]
    assert seen(longest_match(segments, context)) == expected(files, context)


def test_of_very_many_places_a_sample_is_taken() -> None:
    match = longest_match([segment({"a": [7] * (3 * MAX_PLACES)})], [7])
    assert match is not None
    assert MAX_PLACES - 1 <= len(match.tokens()) <= MAX_PLACES


@given(FILES, RUNS, RUNS)
def test_following_equals_matching_again(files: dict[str, list[int]], context: list[int], more: list[int]) -> None:
    segments = [segment(files)]
    match = longest_match(segments, context)
    for token in more:
        context = [*context, token]
        match = match and match.follow(token)
        if match is None:
            return
        assert seen(match) == seen(longest_match(segments, context))
