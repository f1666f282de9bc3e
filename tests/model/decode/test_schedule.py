from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.scripted import sure

from lacuna_model.core.constraint import Commit
from lacuna_model.core.context import Gap
from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.decode.schedule import draw, noise_of, propose

EOG = 2


def opened(size: int = 6, committed: dict[int, int] | None = None) -> Canvas:
    canvas = Canvas(Gap(5), size, size)
    canvas.open_block()
    for slot, token in (committed or {}).items():
        canvas.slots[slot] = token
    return canvas


def slots(canvas: Canvas, seen: Marginals, steps_left: int = 1, **options: object) -> list[int]:
    return [commit.slot for commit in propose([canvas], [seen], DecodeOptions(**options), steps_left)]


def wanted(entropy: list[float], exact: int = 0) -> Marginals:
    return sure(range(20, 20 + len(entropy)), entropy, exact)


class TestEntropyBound:
    def test_the_sum_of_all_but_the_frontier_stays_within_the_bound(self) -> None:
        seen = wanted([9.0, 0.1, 0.1, 0.1, 0.1, 0.1])
        assert slots(opened(), seen, entropy_bound=0.25) == [0, 1, 2]
        assert slots(opened(), seen, entropy_bound=0.05) == [0]
        assert slots(opened(), seen, entropy_bound=9.0) == [0, 1, 2, 3, 4, 5]

    def test_the_surest_slots_come_first(self) -> None:
        assert slots(opened(), wanted([2.0, 1.0, 0.1, 3.0, 0.0, 3.0]), entropy_bound=0.5) == [0, 4, 2]

    def test_at_least_one_slot_is_taken(self) -> None:
        assert slots(opened(), wanted([9.0] * 6), entropy_bound=0.0) == [0]

    def test_of_equally_certain_slots_the_nearest_to_committed_text_comes_first(self) -> None:
        assert slots(opened(committed={0: 9, 1: 9}), wanted([0.5] * 6), entropy_bound=0.6) == [2, 3]

    def test_verified_slots_cost_nothing(self) -> None:
        assert slots(opened(), wanted([9.0] * 6, exact=3), entropy_bound=0.0) == [0, 1, 2]

    @settings(deadline=None)
    @given(st.lists(st.floats(0, 4), min_size=1, max_size=16), st.floats(0, 4))
    def test_the_bound_holds_for_any_entropy(self, entropy: list[float], bound: float) -> None:
        seen = wanted(entropy)
        taken = slots(opened(len(entropy)), seen, entropy_bound=bound)
        assert sum(float(seen.entropy[slot]) for slot in taken if slot) <= bound + 1e-6
        assert 0 in taken
        assert len(set(taken)) == len(taken)


class TestConfidence:
    def test_every_sure_slot_is_taken(self) -> None:
        seen = wanted([0.1] * 6)
        seen.logp[3:, 0] = np.log(0.5)
        seen.entropy[3:] = 1.0
        assert slots(opened(), seen, schedule="confidence", confidence=0.9) == [0, 1, 2]
        assert slots(opened(), seen, schedule="confidence", confidence=0.4) == [0, 1, 2, 3, 4, 5]

    def test_at_least_one_slot_is_taken(self) -> None:
        assert slots(opened(), wanted([0.1] * 6), schedule="confidence", confidence=0.99) == [0]

    def test_verified_slots_are_taken_as_certain(self) -> None:
        assert slots(opened(), wanted([0.1] * 6, exact=4), schedule="confidence", confidence=0.99) == [0, 1, 2, 3]


class TestSingle:
    def test_takes_the_first_open_slot(self) -> None:
        assert slots(opened(), wanted([9.0, 0, 0, 0, 0, 0]), schedule="single") == [0]
        assert slots(opened(committed={0: 9, 2: 9}), wanted([0.0] * 6), schedule="single") == [1]

    def test_a_full_block_next_to_an_open_one_gets_no_commit(self) -> None:
        full, other = opened(2, {0: 9, 1: 9}), opened(6)
        found = propose([full, other], [wanted([0.0] * 2), wanted([0.0] * 6)], DecodeOptions(schedule="single"), 1)
        assert found == [Commit(1, 0, 20)]


@pytest.mark.parametrize("schedule", ["entropy", "confidence", "single"])
class TestSteps:
    def test_the_last_step_takes_everything(self, schedule: str) -> None:
        options = {"schedule": schedule, "steps": 1, "entropy_bound": 0.0, "confidence": 0.99}
        assert sorted(slots(opened(), wanted([3.0] * 6), **options)) == [0, 1, 2, 3, 4, 5]

    @pytest.mark.parametrize(("steps_left", "count"), [(2, 3), (3, 2), (4, 2), (6, 1), (9, 1)])
    def test_enough_is_taken_for_the_steps_left(self, schedule: str, steps_left: int, count: int) -> None:
        options = {"schedule": schedule, "steps": 9, "entropy_bound": 0.0, "confidence": 0.99}
        assert len(slots(opened(), wanted([3.0] * 6), steps_left, **options)) == count


def test_commits_of_all_gaps_are_ordered_by_cost() -> None:
    first, second = wanted([0.0, 0.5, 9, 9, 9, 9]), wanted([0.0, 0.2, 9, 9, 9, 9])
    closed = opened()
    closed.closed = True
    found = propose([opened(), closed, opened()], [first, None, second], DecodeOptions(entropy_bound=1.0), 1)
    assert found == [Commit(0, 0, 20), Commit(2, 0, 20), Commit(2, 1, 21), Commit(0, 1, 21)]


def drawn_with(seed: int, seen: Marginals, canvas: Canvas, temperature: float = 1.0) -> Marginals:
    return draw(seen, canvas.frontier, temperature, noise_of(seed, canvas, seen.ids))


class TestDraw:
    def seen(self, exact: int = 0) -> Marginals:
        generator = np.random.default_rng(0)
        logits = generator.normal(size=(8, 12)).astype(np.float32)
        logp = -np.sort(-(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))), axis=1)
        return Marginals(np.tile(np.arange(12), (8, 1)), logp, np.ones(8, dtype=np.float32), exact)

    def test_a_seed_reproduces_the_sampled_order(self) -> None:
        draws = [drawn_with(seed, self.seen(), opened(8)).ids for seed in (7, 7, 8)]
        assert np.array_equal(draws[0], draws[1])
        assert not np.array_equal(draws[0], draws[2])

    def test_neither_drafts_nor_the_order_of_candidates_change_what_is_drawn(self) -> None:
        seen, whole = self.seen(), drawn_with(7, self.seen(), opened(8))
        assert np.array_equal(drawn_with(7, seen.part(0, 3), opened(8)).ids, whole.ids[:3])
        turned = replace(seen, ids=seen.ids[:, ::-1], logp=seen.logp[:, ::-1])
        assert np.array_equal(drawn_with(7, turned, opened(8)).ids, whole.ids)
        later = Canvas(Gap(5), 8, 8, done=[20] * 3)
        later.open_block()
        assert np.array_equal(drawn_with(7, seen.part(3, 8), later).ids, whole.ids[3:])

    def test_candidates_keep_their_probabilities(self) -> None:
        seen = self.seen()
        drawn = drawn_with(0, seen, opened(8))
        order = np.argsort(drawn.ids, axis=1)
        assert np.array_equal(np.take_along_axis(drawn.logp, order, axis=1), seen.logp)

    def test_a_low_temperature_takes_the_best_token(self) -> None:
        seen = self.seen()
        assert np.array_equal(drawn_with(0, seen, opened(8), 1e-6).ids[:, 0], seen.ids[:, 0])

    def test_tokens_are_drawn_as_often_as_they_are_probable(self) -> None:
        seen = self.seen()
        best = np.array([drawn_with(seed, seen, opened(8)).ids[:, 0] == 0 for seed in range(-2000, 2000)]).mean(axis=0)
        probabilities = np.exp(seen.logp)
        assert np.allclose(best, probabilities[:, 0] / probabilities.sum(axis=1), atol=0.04)

    def test_verified_slots_end_where_another_token_was_drawn(self) -> None:
        for seed in range(20):
            drawn = drawn_with(seed, self.seen(exact=4), opened(8, {0: 5, 1: 5}))
            same = drawn.ids[2:6, 0] == 0
            expected = 4 if same.all() else int(np.argmin(same)) + 1
            assert drawn.exact == expected
        assert drawn_with(0, self.seen(), opened(8, {0: 5, 1: 5})).exact == 0
