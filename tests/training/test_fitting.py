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
from tests.training.test_base import BASE, MODEL

from lacuna_model.core.errors import LacunaError, WeightsError
from lacuna_model.loading import rows_file
from lacuna_model.network.assembly import fuse
from lacuna_model.network.devices import HOST
from training import loop
from training.base import Base
from training.feeding import Batch, Sample, ahead, batched, prompt
from training.fitting import Fit
from training.loop import Progress


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
    options: dict[str, Any] = {"rows": rows, "done": until(steps), "notice": lambda _: None, "every_s": 9.0}
    loop.train(fit.step, itertools.cycle(batches), Progress(), **options)


def test_training_makes_the_slots_hold(batches: list[Batch]) -> None:
    fit = Fit(BASE, slots=4, rank=4, rate=5e-3)
    before = fit.acceptance(batches)
    trained(fit, batches, 60)
    after = fit.acceptance(batches)
    assert before[0] == after[0] == 1.0  # what the base says itself
    assert after[1] > before[1] + 0.3


def test_a_training_begins_from_a_file(batches: list[Batch], tmp_path: Path) -> None:
    first, second = (Fit(BASE, slots=4, rank=4, rate=5e-3, seed=seed) for seed in (0, 1))
    trained(first, batches, 20)
    rows_file.write(tmp_path / "masks", *first.kept())
    second.begin_from(tmp_path / "masks")
    assert second.acceptance(batches) == pytest.approx(first.acceptance(batches), abs=0.1)
    with pytest.raises(WeightsError, match="has 4 slots of rank 4"):
        Fit(BASE, slots=3, rank=4).begin_from(tmp_path / "masks")


def test_with_less_memory_a_part_of_each_batch_is_used(batches: list[Batch], monkeypatch: pytest.MonkeyPatch) -> None:
    fit, whole = Fit(BASE, slots=3, rank=2), Fit.step

    def step(self: Fit, batch: Batch, rows: int, done: float) -> torch.Tensor:
        if rows > 64:
            raise torch.OutOfMemoryError("no memory")
        return whole(self, batch, rows, done)

    monkeypatch.setattr(Fit, "step", step)
    noticed: list[float] = []
    progress: dict[str, Any] = {"notice": lambda progress: noticed.append(progress.share), "every_s": 0.0}
    found = Progress()
    loop.train(fit.step, itertools.cycle(batches), found, rows=256, done=until(3), **progress)
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
