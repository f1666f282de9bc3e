import numpy as np
import pytest

from lacuna_model.prior.index import Documents, Segment
from lacuna_model.prior.matching import match_left
from lacuna_model.prior.proposal import END_TOKENS, EndEvidence, Walk, agreement, features, propose, propose_right
from lacuna_model.prior.suffix_array import token_type

KIND = token_type(1000)
END = 999
RATES = (0.0, 0.5, 0.9, 1.0, 1.0, 1.0, 1.0)


def segments(*documents: list[int]) -> list[Segment]:
    return [Segment(Documents.index({str(i): document for i, document in enumerate(documents)}, KIND))]


def test_shares_are_those_of_the_places() -> None:
    match = match_left(segments([1, 2, 3], [1, 2, 3], [1, 2, 4]), [1, 2])
    assert match is not None
    proposal = propose(match)
    assert (proposal.ids.tolist(), proposal.length, proposal.count) == ([3, 4], 2, 3)
    assert proposal.shares == pytest.approx([2 / 3, 1 / 3])
    assert proposal.purity == pytest.approx(2 / 3)


def test_what_is_proposed_beside_a_token() -> None:
    match = match_left(segments([1, 2, 3], [1, 2, 3], [1, 2, 4]), [1, 2])
    assert match is not None
    proposal = propose(match).without(3)
    assert proposal is not None
    assert (proposal.ids.tolist(), proposal.shares.tolist()) == ([4], pytest.approx([1 / 3]))
    assert proposal.without(4) is None


def test_a_fill_ends_where_the_text_behind_the_gap_follows() -> None:
    known = segments([1, 2, 7, 8, 9], [1, 2, 3, 4, 5])
    match = match_left(known, [1, 2])
    assert match is not None
    assert sorted(agreement(match, [7, 8, 0]).tolist()) == [0, 2]
    proposal = propose(match, EndEvidence(END, [7, 8, 0], RATES))
    assert dict(zip(proposal.ids.tolist(), proposal.shares.tolist(), strict=True)) == pytest.approx(
        {3: 0.5, END: 0.45, 7: 0.05}
    )


def test_agreement_is_bounded_and_stops_at_the_end_of_a_document() -> None:
    match = match_left(segments([1, *[2] * 20], [1, 2, 2]), [1])
    assert match is not None
    assert sorted(agreement(match, [2] * 20).tolist()) == [2, END_TOKENS]


def test_a_walk_follows_a_span_and_finds_its_way_back() -> None:
    walk = Walk(segments([1, 2, 3, 4, 5], [8, 9]), [1, 2], EndEvidence(END, [], RATES), None)
    taken = []
    for _ in range(2):
        proposal = walk.proposal()
        assert proposal is not None
        taken.append(int(proposal.ids[0]))
        walk.take(taken[-1])
    assert taken == [3, 4]
    walk.take(8)  # not what the project has there: the longest match is now the token alone
    proposal = walk.proposal()
    assert proposal is not None
    assert (proposal.ids.tolist(), proposal.length) == ([9], 1)
    walk.take(7)
    assert walk.proposal() is None


def test_the_first_token_may_be_bound() -> None:
    known = segments([1, 2, 3], [2, 4])
    allowed = np.zeros(1000, dtype=bool)
    allowed[4] = True
    walk = Walk(known, [1, 2], EndEvidence(END, [], RATES), allowed)
    assert walk.match is not None
    assert (walk.match.tokens().tolist(), walk.match.length) == ([4], 1)


def test_what_stands_in_front_of_the_right_side() -> None:
    proposal = propose_right(segments([5, 1, 2], [6, 1, 3]), [1, 2, 0])
    assert proposal is not None
    assert (proposal.ids.tolist(), proposal.length) == ([5], 2)
    assert propose_right(segments([1]), [1]) is None


def test_features_grow_with_length_count_and_purity() -> None:
    small, large = features(1, 1, 0.2), features(7, 3, 0.9)
    assert (large[1:] > small[1:]).all()
    assert small[0] == large[0] == 1
