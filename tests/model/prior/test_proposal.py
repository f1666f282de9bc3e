from lacuna_model.prior.index import IndexedDocuments, Segment
from lacuna_model.prior.proposal import Walk
from lacuna_model.prior.suffix_array import token_type

KIND = token_type(1000)


def segments(*documents: list[int]) -> list[Segment]:
    return [Segment(IndexedDocuments.index({str(i): document for i, document in enumerate(documents)}, KIND))]


def test_a_walk_follows_a_match_and_finds_another_one_after_a_different_token() -> None:
    walk = Walk(segments([1, 2, 3, 4, 5], [8, 9]), [1, 2])
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
