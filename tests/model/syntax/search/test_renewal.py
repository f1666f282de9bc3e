"""Renewal of a witness: failed searches are not repeated, likely proposals are searched for in advance."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.test_witness import constraint_of, open_view

from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.region.draft import Fill
from lacuna_model.syntax.search import renewal
from lacuna_model.syntax.search.beam import Effort, Found
from lacuna_model.syntax.search.renewal import RENEW_VERIFIES, Renewal

EOG = 2
WITNESS = [Fill((5, 6, 7), b"abc", 3)]
ENDED = [Fill((5,), b"a", 1)]


class Searches:
    """A fake search that finds a given result and logs the proposed tokens."""

    def __init__(self, found: list[Fill] | None) -> None:
        self.found = found
        self.asked: list[list[int]] = []

    def candidates(self, gaps: object, own: Sequence[Commit], gap: int, *, known: object, bare: bool) -> object:
        self.asked.append([commit.token for commit in own])
        return None

    def joint(self, queues: object, held: Sequence[Fill], judge: object, effort: Effort) -> Found:
        return Found(tuple(self.found or held), frozenset() if self.found else frozenset({0}))


def renewal_of(searches: Searches, monkeypatch: pytest.MonkeyPatch) -> Renewal:
    monkeypatch.setattr(renewal, "joint_search", searches.joint)
    return Renewal(searches, None, Clock(), EOG)  # type: ignore[arg-type]


def view(*likely: int, open_slots: int = 3) -> GapView:
    """A gap with one committed token and the model's candidates for the slot after it."""
    ids = np.tile(np.array([8, 9, 10]), (1 + open_slots, 1))
    ids[1] = likely
    return GapView((), (5, *(None,) * open_slots), ids, np.zeros(ids.shape, np.float32))


def test_a_failed_search_is_repeated_only_for_other_commits(
    tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    constraint = constraint_of("f(|)\n", "python", tokens)
    constraint.foresee([open_view()])
    made: list[int] = []

    def in_vain(queues: Mapping[int, object], held: Sequence[Fill], verifier: object, effort: Effort) -> Found:
        made.append(effort.verifies)
        return Found(tuple(held), frozenset(queues))

    monkeypatch.setattr(renewal, "joint_search", in_vain)
    for _ in range(2):
        constraint.admit([open_view()], [Commit(0, 0, 5)])
        assert made == [RENEW_VERIFIES]
    constraint.admit([replace(open_view(), ids=np.full((4, 1), 6, dtype=np.int64))], [Commit(0, 0, 5)])
    assert made == [RENEW_VERIFIES]
    constraint.admit([open_view()], [Commit(0, 0, 6)])
    assert made == [RENEW_VERIFIES] * 2


@pytest.mark.parametrize("likely", [(EOG, 9, 10), (9, EOG, 10)])
def test_a_likely_end_is_searched_for_before_it_is_proposed(
    monkeypatch: pytest.MonkeyPatch, likely: tuple[int, ...]
) -> None:
    searches, gaps, end = Searches(ENDED), [view(*likely)], Commit(0, 1, EOG)
    one = renewal_of(searches, monkeypatch)
    one.expect(gaps, 0, WITNESS)
    assert searches.asked == [[EOG]]
    assert one.find(gaps, [end], 0, WITNESS) == ENDED
    assert searches.asked == [[EOG]]


def test_the_best_token_of_the_last_slot_of_a_block_is_searched_for_in_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(ENDED)
    one = renewal_of(searches, monkeypatch)
    one.expect([view(9, 10, 8, open_slots=1)], 0, WITNESS)
    assert searches.asked == [[9]]


def test_a_result_found_in_advance_is_used_only_for_the_same_witness_and_proposal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches, gaps, end = Searches(ENDED), [view(9, EOG, 10)], Commit(0, 1, EOG)
    one = renewal_of(searches, monkeypatch)
    one.expect(gaps, 0, WITNESS)
    searches.found = [Fill((5, 9), b"ad", 2)]
    assert one.find(gaps, [Commit(0, 1, 9)], 0, WITNESS) == searches.found
    assert one.find(gaps, [end], 0, [Fill((5, 7), b"ac", 2)]) == searches.found
    assert searches.asked == [[EOG], [9], [EOG]]


def test_a_search_for_an_end_that_failed_in_advance_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    searches, gaps, end = Searches(None), [view(9, EOG, 10)], Commit(0, 1, EOG)
    one = renewal_of(searches, monkeypatch)
    one.expect(gaps, 0, WITNESS)
    assert one.find(gaps, [end], 0, WITNESS) == WITNESS
    assert searches.asked == [[EOG]]


@pytest.mark.parametrize(
    ("gap", "witness"),
    [
        (view(9, 10, EOG), WITNESS),  # an end is not likely
        (view(9, EOG, 10), ENDED),  # the witness has the end already
        (GapView((5,), (), closed=True), WITNESS),
        (GapView((), (5, None)), WITNESS),  # no pass has read the gap yet
    ],
)
def test_nothing_else_is_searched_for_in_advance(
    monkeypatch: pytest.MonkeyPatch, gap: GapView, witness: list[Fill]
) -> None:
    searches = Searches(ENDED)
    renewal_of(searches, monkeypatch).expect([gap], 0, witness)
    assert searches.asked == []
