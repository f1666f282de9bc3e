import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.ending import FLOOR
from lacuna_model.prior.index import Documents, Segment
from lacuna_model.prior.spans import MAX_RIGHT, MIN_RIGHT, Span, Spoken, find_spans, log_odds, probabilities
from lacuna_model.prior.suffix_array import MAX_MATCH, token_type
from lacuna_model.prior.weights import fitted

KIND = token_type(1000)
TRUST = (-3.0, 1.0, 1.0, 0.0, 0.5, 0.0, 0.0)


def segments(*documents: list[int]) -> list[Segment]:
    return [Segment(Documents.index({str(i): document for i, document in enumerate(documents)}, KIND))]


def test_a_span_stands_between_matches_of_both_sides() -> None:
    (span,) = find_spans(segments([1, 2, 3, 7, 7, 4, 5, 6]), [9, 2, 3], [4, 5, 8])
    assert span == Span((7, 7), left=2, right=2, count=1, rivals=1)


def test_places_that_agree_are_counted_and_others_are_rivals() -> None:
    known = segments([1, 2, 7, 4, 5], [1, 2, 7, 4, 5], [3, 2, 8, 4, 5])
    first, second = find_spans(known, [1, 2], [4, 5])
    assert (first.tokens, first.count, first.left) == ((7,), 2, 2)
    assert (second.tokens, second.count, second.left) == ((8,), 1, 1)
    assert first.rivals == second.rivals == 2


def test_a_single_token_behind_is_no_sign_of_an_end() -> None:
    assert find_spans(segments([1, 2, 7, 4, 6]), [1, 2], [4, 5]) == []
    assert find_spans(segments([1, 2, 7, 4]), [1, 2], [4]) == []


def test_no_span_crosses_a_document_or_begins_otherwise_than_allowed() -> None:
    assert find_spans(segments([1, 2, 7], [4, 5]), [1, 2], [4, 5]) == []
    allowed = np.zeros(1000, dtype=bool)
    allowed[8] = True
    known = segments([1, 2, 7, 4, 5], [1, 2, 8, 4, 5], [1, 2, 4, 5])
    assert [span.tokens for span in find_spans(known, [1, 2], [4, 5], allowed)] == [(8,)]


def test_hidden_documents_offer_none() -> None:
    documents = Documents.index({"a": [1, 2, 7, 4, 5], "b": [1, 2, 8, 4, 5, 9, 1, 2]}, KIND)
    spans = find_spans([Segment.of(documents, {"a"})], [1, 2], [4, 5])
    assert [span.tokens for span in spans] == [(8,)]


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=40), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), max_size=12),
    st.lists(st.integers(0, 3), max_size=12),
)
def test_every_span_is_where_it_is_said_to_be(documents: list[list[int]], left: list[int], after: list[int]) -> None:
    for span in find_spans(segments(*documents), left, after):
        assert 1 <= span.left <= MAX_MATCH
        assert MIN_RIGHT <= span.right <= MAX_RIGHT
        run = [*left[-span.left :], *span.tokens, *after[: span.right]]
        assert any(document[i : i + len(run)] == run for document in documents for i in range(len(document)))


def test_chances_grow_with_the_match_and_leave_room_for_none() -> None:
    weak, strong = Span((7,), 1, 2, 1, 2), Span((8,), 12, 8, 3, 2)
    chances = probabilities(log_odds([weak, strong], TRUST))
    assert chances[0] < chances[1]
    assert chances.sum() < 1
    assert probabilities(log_odds([strong], TRUST))[0] > chances[1]
    shipped = probabilities(log_odds([Span((8,), 1, 2, 1, 2), Span((7,), 32, 16, 3, 2)], fitted().spans))
    assert shipped[0] < 0.1 < shipped[1]


def test_nothing_known_offers_nothing() -> None:
    assert find_spans(segments([]), [1], [2, 3]) == []
    assert find_spans([], [1], [2, 3]) == []
    assert probabilities(log_odds([Span((7,), 1, 2, 1)], TRUST)) == pytest.approx(
        [1 / (1 + np.exp(-np.dot(TRUST, Span((7,), 1, 2, 1).features())))]
    )


def test_the_base_says_how_likely_a_span_is_and_how_far_it_lies_behind() -> None:
    said = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.25, 0.25]], dtype=torch.float64)
    spoken = Spoken.of(said.log(), [1, 2])
    assert spoken.mean == pytest.approx((np.log(0.7) + np.log(0.25)) / 2)
    assert spoken.lag == pytest.approx(np.log(0.25) - np.log(0.5))
    assert Spoken.of(said[:0], []) == Spoken(0.0, 0.0)
    assert Spoken(-99.0, -np.inf).features(0.5).tolist() == [1.0, 0.5, FLOOR, FLOOR]
