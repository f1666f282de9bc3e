"""Rows are trained where a draft would reach them, and training makes what is drafted in one pass hold."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from tests.model import tiny
from tests.model.elsewhere import ELSEWHERE, Elsewhere
from tests.model.fim import tiny_fim

from lacuna_model.core.errors import LacunaError, WeightsError
from lacuna_model.loading import rows_file
from lacuna_model.network.assembly import fuse
from lacuna_model.network.devices import HOST
from training import loop
from training.base import Base
from training.feeding import Batch, Sample, ahead, batched, prompt
from training.masks.fitting import GROUP_ROWS, Fit, Prompts, asked, at, chosen, targets

MASKS, VOCABULARY = 3, 50


def prompts(count: int = 3, places: int = 128, seed: int = 0) -> Prompts:
    """Prompts whose text is mostly what the model says; it says tokens that the head lacks, now and then."""
    drawn = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, VOCABULARY + 2, (count, places), generator=drawn)
    greedy = ids.roll(-1, 1)
    wrong = torch.rand(ids.shape, generator=drawn) < 0.3
    greedy[wrong] = (greedy[wrong] + 1) % (VOCABULARY + 2)
    ordinary = torch.arange(places) < torch.tensor([[places], [places - 9], [places - 30]])[:count]
    fill = torch.full((count,), places // 2)
    ordinary[torch.arange(count), fill] = False
    return Prompts(ids, greedy, ordinary, fill)


def reference(one: Prompts, p: int, t: int, j: int) -> bool:
    """Whether the j-th row behind place t is of use, as the definition has it."""
    if not (one.ordinary[p, t] or t == one.fill[p]):
        return False
    for place in range(t, t + j):
        if place + 1 >= one.ids.shape[1] or not one.ordinary[p, place + 1]:
            return False
        if one.ids[p, place + 1] != one.greedy[p, place] or one.greedy[p, place] >= VOCABULARY:
            return False
    return bool(one.greedy[p, t + j] < VOCABULARY)


def test_rows_are_of_use_while_the_text_is_the_model_s_own() -> None:
    one = prompts()
    found = one.reached(MASKS, VOCABULARY)
    for p in range(3):
        for t in range(128):
            assert found[p, t].tolist() == [reference(one, p, t, j) for j in range(1, MASKS + 1)]


def test_whole_anchors_fill_the_groups_and_those_of_the_fill_come_first() -> None:
    one = prompts()
    reached = one.reached(MASKS, VOCABULARY)
    rows = chosen(reached.sum(-1), MASKS, one.fill, 6, torch.Generator().manual_seed(1))
    assert rows.anchor.shape == (6, GROUP_ROWS)
    seen = set()
    for number, anchors, slots in zip(rows.prompt.tolist(), rows.anchor.tolist(), rows.slot.tolist(), strict=True):
        pairs = [(t, j) for t, j in zip(anchors, slots, strict=True) if t >= 0]
        for t in {t for t, _ in pairs}:
            assert sorted(j for place, j in pairs if place == t) == list(range(1, int(reached[number, t].sum()) + 1))
        seen |= {(number, t, j) for t, j in pairs}
    assert len(seen) == int(rows.used.sum()) > 0.8 * 6 * GROUP_ROWS
    fullest = chosen(reached.sum(-1), MASKS, one.fill, 3, torch.Generator().manual_seed(1))
    assert len(set(fullest.prompt.tolist())) > 1
    in_fill = fullest.anchor[fullest.used] >= 64
    assert in_fill.float().mean() > 0.4


def test_a_row_predicts_the_token_after_its_own_place() -> None:
    one = prompts()
    rows = chosen(one.reached(MASKS, VOCABULARY).sum(-1), MASKS, one.fill, 4, torch.Generator().manual_seed(1))
    places, used = targets(one, rows), rows.used
    assert torch.equal(places[used], (rows.anchor + rows.slot)[used])


def test_all_rows_that_are_reached_are_asked_once() -> None:
    reached = prompts().reached(MASKS, VOCABULARY)
    found = []
    for rows in asked(reached):
        for number, anchors, slots in zip(rows.prompt.tolist(), rows.anchor.tolist(), rows.slot.tolist(), strict=True):
            found += [(number, anchor, slot - 1) for anchor, slot in zip(anchors, slots, strict=True)]
    assert sorted(found) == [tuple(place) for place in reached.nonzero().tolist()]


MODEL = tiny_fim.loaded()
BASE = Base(MODEL.config, fuse(tiny.state(MODEL.config, 0), MODEL.config))


def samples(seed: int = 0) -> Iterator[Sample]:
    """Prompts whose fills the model itself wrote, so that drafts have much to reach."""
    rng = Random(seed)
    tokens = MODEL.tokenizer.encode(tiny.CODE * 2)
    while True:
        begun = prompt(tokens, MODEL.fim, rng)[:60]
        yield Sample([*begun, MODEL.fim.middle, *tiny_fim.greedy(MODEL, [*begun, MODEL.fim.middle], 24)])


@pytest.fixture(scope="module")
def batches() -> list[Batch]:
    return list(batched(itertools.islice(samples(), 24), MODEL.fim, 512))


def until(steps: int):
    return lambda now: now.steps / steps


def trained(fit: Fit, batches: list[Batch], steps: int, rows: int = 256) -> None:
    loop.train(fit.step, itertools.cycle(batches), rows=rows, done=until(steps), notice=lambda _: None, every_s=9.0)


@pytest.mark.parametrize("both_ways", [False, True])
def test_training_makes_the_slots_hold(batches: list[Batch], both_ways: bool) -> None:
    """Also where masks see both ways, whatever is given to others."""
    fit = Fit(BASE, slots=4, rank=4, rate=5e-3, both_ways=both_ways)
    before = fit.acceptance(batches)
    trained(fit, batches, 60)
    after = fit.acceptance(batches)
    assert before[0] == after[0] == 1.0  # what the base says itself
    assert after[1] > before[1] + 0.3
    assert fit.config.both_ways is both_ways


def test_drafts_of_rows_that_see_both_ways_are_asked_whole() -> None:
    reached = prompts().reached(MASKS, VOCABULARY)
    (some,) = asked(reached, both_ways=True)
    assert some.both_ways
    assert some.slot.tolist() == [list(range(1, MASKS + 1))] * int(reached.any(-1).sum())


def test_what_is_not_reached_is_not_learnt() -> None:
    one = prompts()
    reached = one.reached(MASKS, VOCABULARY)
    rows = chosen(reached.any(-1) * MASKS, MASKS, one.fill, 3, torch.Generator().manual_seed(1))
    assert 0 < at(reached, rows).sum() < rows.used.sum()


def test_a_training_goes_on_from_its_state(batches: list[Batch]) -> None:
    first, second = (Fit(BASE, slots=4, rank=4, seed=seed) for seed in (0, 1))
    trained(first, batches, 2, rows=128)
    second.go_on(first.state())
    one, other = (float(fit.step(batches[0], 128, 0.5)) for fit in (first, second))
    assert one == pytest.approx(other, abs=0.3)
    assert first.acceptance(batches[:1]) == pytest.approx(second.acceptance(batches[:1]), abs=0.2)


def test_a_training_begins_from_a_file(batches: list[Batch], tmp_path: Path) -> None:
    first, second = (Fit(BASE, slots=4, rank=4, rate=5e-3, seed=seed) for seed in (0, 1))
    trained(first, batches, 20)
    rows_file.write(tmp_path / "masks", *first.kept())
    second.begin_from(tmp_path / "masks")
    assert second.acceptance(batches) == pytest.approx(first.acceptance(batches), abs=0.1)
    with pytest.raises(WeightsError, match="has 4 slots of rank 4"):
        Fit(BASE, slots=3, rank=4).begin_from(tmp_path / "masks")


def test_a_teacher_s_words_are_learnt_and_asked(batches: list[Batch]) -> None:
    said = [Sample(list(one.ids), [5] * len(one.ids)) for one in itertools.islice(samples(1), 8)]
    taught = list(batched(said, MODEL.fim, 512))
    fit = Fit(BASE, slots=3, rank=4)
    assert fit.acceptance(taught)[0] < 0.5


def test_with_less_memory_a_part_of_each_batch_is_used(batches: list[Batch], monkeypatch: pytest.MonkeyPatch) -> None:
    fit, whole = Fit(BASE, slots=3, rank=2), Fit.step

    def step(self: Fit, batch: Batch, rows: int, done: float) -> torch.Tensor:
        if rows > 64:
            raise torch.OutOfMemoryError("no memory")
        return whole(self, batch, rows, done)

    monkeypatch.setattr(Fit, "step", step)
    noticed: list[float] = []
    progress: dict[str, Any] = {"notice": lambda progress: noticed.append(progress.share), "every_s": 0.0}
    found = loop.train(fit.step, itertools.cycle(batches), rows=256, done=until(3), **progress)
    assert (found.steps, found.rows, found.share) == (3, 192, 0.25)
    assert noticed == [0.25] * 3


def test_a_loss_that_is_no_number_ends_the_training(batches: list[Batch]) -> None:
    fit = Fit(BASE, slots=3, rank=2)
    with torch.no_grad():
        fit.tensors["masks"].fill_(torch.nan)
    with pytest.raises(LacunaError, match="no number"):
        trained(fit, batches, 3, rows=64)


def test_batches_are_made_ahead_and_their_errors_are_raised(batches: list[Batch]) -> None:
    assert [one.ids.tolist() for one in ahead(batches, HOST)] == [one.ids.tolist() for one in batches]

    def broken() -> Iterator[Batch]:
        yield batches[0]
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(ahead(broken(), HOST))


def test_one_batch_has_prompts_of_about_one_length() -> None:
    lengths = [10, 70, 20, 64, 65, 129]
    made = list(batched([Sample([MODEL.fim.middle] * n) for n in lengths], MODEL.fim, 128))
    assert sorted((len(one.ids), one.ids.shape[1]) for one in made) == [(1, 64), (1, 128), (1, 128), (1, 192), (2, 64)]


@pytest.mark.parametrize("soft", [0.0, 0.5])
def test_a_step_in_bfloat16_learns_as_well(batches: list[Batch], soft: float) -> None:
    narrow = {name: one.bfloat16() for name, one in fuse(tiny.state(MODEL.config, 0), MODEL.config).items()}
    fit = Fit(Base(MODEL.config, narrow), slots=4, rank=4, rate=5e-3, soft=soft)
    losses = [float(fit.step(batch, 256, 0.1)) for batch in itertools.islice(itertools.cycle(batches), 30)]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    assert all(one.dtype is torch.float32 for one in fit.tensors.values())


def test_nothing_mixes_the_device_with_ordinary_memory(batches: list[Batch]) -> None:
    with Elsewhere():
        tensors = {name: one.to(ELSEWHERE) for name, one in fuse(tiny.state(MODEL.config, 0), MODEL.config).items()}
        fit = Fit(Base(MODEL.config, tensors), slots=4, rank=4)
        there = [one.to(ELSEWHERE) for one in batches[:2]]
        assert float(fit.step(there[0], 128, 0.5)) > 0
        assert fit.acceptance(there)[0] == 1.0
