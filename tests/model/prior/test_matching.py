from collections import Counter
from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.prior.index import MAX_MATCH, MAX_PLACES, IndexedDocuments, Segment, token_type
from lacuna_model.prior.matching import Match, Walk, longest_match

VOCABULARIES = [49_152, 151_936]  # tokens of 16 and of 32 bits
TOKENS = st.lists(st.integers(0, 3), max_size=14)
FILES = st.dictionaries(st.sampled_from("abcdef"), TOKENS, max_size=4)


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


@given(FILES, FILES, st.sets(st.sampled_from("abcdef")), TOKENS, st.sampled_from(VOCABULARIES))
def test_the_longest_match_over_all_segments_is_found(
    rest: dict[str, list[int]], recent: dict[str, list[int]], hidden: set[str], context: list[int], vocab_size: int
) -> None:
    segments = [segment(rest, hidden, vocab_size), segment(recent, (), vocab_size)]
    files = [*(tokens for name, tokens in rest.items() if name not in hidden), *recent.values()]
    assert seen(longest_match(segments, context)) == expected(files, context)


def test_of_very_many_places_a_sample_is_taken() -> None:
    match = longest_match([segment({"a": [7] * (3 * MAX_PLACES)})], [7])
    assert match is not None
    assert MAX_PLACES - 1 <= match.count <= MAX_PLACES


@given(FILES, TOKENS, TOKENS)
def test_following_equals_matching_again(files: dict[str, list[int]], context: list[int], more: list[int]) -> None:
    segments = [segment(files)]
    match = longest_match(segments, context)
    for token in more:
        context = [*context, token]
        match = match and match.follow(token)
        if match is None:
            return
        assert seen(match) == seen(longest_match(segments, context))


def test_a_walk_follows_a_match_and_finds_another_one_after_a_different_token() -> None:
    walk = Walk([segment({"a": [1, 2, 3, 4, 5], "b": [8, 9]})], [1, 2])
    taken = []
    for _ in range(2):
        proposal = walk.proposal()
        assert proposal is not None
        taken.append(int(proposal.ids[0]))
        walk.take(taken[-1])
    assert taken == [3, 4]
    walk.take(8)  # the project has another token there: now the longest match is this token alone
    proposal = walk.proposal()
    assert proposal is not None
    assert (proposal.ids.tolist(), proposal.length) == ([9], 1)
    walk.take(7)
    assert walk.proposal() is None
