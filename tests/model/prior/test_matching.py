from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.prior.index import Documents, Segment
from lacuna_model.prior.matching import Match, match_left, match_right
from lacuna_model.prior.suffix_array import MAX_MATCH, token_type

KIND = token_type(49_152)
TOKENS = st.lists(st.integers(0, 3), max_size=14)
FILES = st.dictionaries(st.sampled_from("abcdef"), TOKENS, max_size=4)


def segment(files: dict[str, list[int]]) -> Segment:
    return Segment(Documents.index(files, KIND))


def longest_left(files: list[list[int]], context: list[int]) -> tuple[int, Counter[int]]:
    """The infinity-gram by its definition: the longest end of the context with a token behind it, and those tokens."""
    for length in range(min(len(context), MAX_MATCH), 0, -1):
        run = context[-length:]
        found = [f[i + length] for f in files for i in range(len(f) - length) if f[i : i + length] == run]
        if found:
            return length, Counter(found)
    return 0, Counter()


def seen(match: Match | None) -> tuple[int, Counter[int]]:
    return (match.length, Counter(match.tokens().tolist())) if match else (0, Counter())


@given(FILES, FILES, TOKENS)
def test_the_longest_match_over_all_segments(
    rest: dict[str, list[int]], recent: dict[str, list[int]], context: list[int]
) -> None:
    segments = [segment(rest), segment(recent)]
    files = [*rest.values(), *recent.values()]
    assert seen(match_left(segments, context)) == longest_left(files, context)
    backward = longest_left([file[::-1] for file in files], context[::-1])
    assert seen(match_right(segments, context)) == backward


@given(FILES, TOKENS, TOKENS)
def test_following_is_matching_anew(files: dict[str, list[int]], context: list[int], more: list[int]) -> None:
    segments = [segment(files)]
    match = match_left(segments, context)
    for token in more:
        context = [*context, token]
        match = match and match.follow(token)
        if match is None:
            return
        assert seen(match) == seen(match_left(segments, context))


@given(FILES, TOKENS, st.sets(st.integers(0, 3)))
def test_only_allowed_tokens_count(files: dict[str, list[int]], context: list[int], allowed: set[int]) -> None:
    flags = np.array([token in allowed for token in range(10)])
    length, tokens = seen(match_left([segment(files)], context, flags))
    assert set(tokens) <= allowed
    # The longest that an allowed token follows, though others may have a longer one.
    for longer in range(length + 1, len(context) + 1):
        run = context[-longer:]
        assert not any(
            f[i : i + longer] == run and f[i + longer] in allowed
            for f in files.values()
            for i in range(len(f) - longer)
        )


def test_tokens_further_on_end_with_the_document() -> None:
    match = match_left([segment({"a": [1, 2, 3], "b": [9, 1, 2]})], [1])
    assert match is not None
    assert sorted(match.tokens().tolist()) == [2, 2]
    assert sorted(match.tokens(ahead=1).tolist()) == [-1, 3]
    assert match.tokens(ahead=50).tolist() == [-1, -1]


def test_documents_that_do_not_count_are_not_seen() -> None:
    documents = Documents.index({"a": [1, 2, 3, 4], "b": [2, 3, 5]}, KIND)
    assert seen(match_left([Segment.of(documents, ["b"])], [1, 2, 3])) == (3, Counter([4]))
    assert seen(match_left([Segment.of(documents, ["a"])], [1, 2, 3])) == (2, Counter([5]))
    assert match_left([Segment.of(documents, ["a", "b"])], [1, 2, 3]) is None
