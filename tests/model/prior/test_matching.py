from collections import Counter
from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.prior.index import IndexedDocuments, Segment
from lacuna_model.prior.matching import Match, longest_match
from lacuna_model.prior.suffix_array import MAX_MATCH, token_type

KIND = token_type(49_152)
TOKENS = st.lists(st.integers(0, 3), max_size=14)
FILES = st.dictionaries(st.sampled_from("abcdef"), TOKENS, max_size=4)


def segment(files: dict[str, list[int]], without: Collection[str] = ()) -> Segment:
    return Segment.of(IndexedDocuments.index(files, KIND), without)


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


@given(FILES, FILES, st.sets(st.sampled_from("abcdef")), TOKENS)
def test_the_longest_match_over_all_segments_is_found(
    rest: dict[str, list[int]], recent: dict[str, list[int]], hidden: set[str], context: list[int]
) -> None:
    segments = [segment(rest, hidden), segment(recent)]
    files = [*(tokens for name, tokens in rest.items() if name not in hidden), *recent.values()]
    assert seen(longest_match(segments, context)) == expected(files, context)


@given(FILES, TOKENS, TOKENS)
def test_following_a_match_equals_matching_again(
    files: dict[str, list[int]], context: list[int], more: list[int]
) -> None:
    segments = [segment(files)]
    match = longest_match(segments, context)
    for token in more:
        context = [*context, token]
        match = match and match.follow(token)
        if match is None:
            return
        assert seen(match) == seen(longest_match(segments, context))
