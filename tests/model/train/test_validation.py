from pathlib import Path

import pytest
from tests.model import tiny

from lacuna_model.loader import LoadedModel
from lacuna_model.train.batches import BatchSource
from lacuna_model.train.feed import Feed
from lacuna_model.train.loop import Trainer, TrainOptions
from lacuna_model.train.samples import SampleOptions
from lacuna_model.train.validation import validate

from .train_tiny import source

OPTIONS = SampleOptions(block_sizes=(16,), context=160, slots=48, rows=104, max_gaps=3, snippets=0.0, nodes=0.0)


def held_out(folder: Path, seed: int = 3, batch_size: int = 4) -> BatchSource:
    return source(folder, OPTIONS, batch_size=batch_size, seed=seed, texts=(tiny.CODE,))


def test_the_same_seed_scores_the_same_gaps(model: LoadedModel, tmp_path: Path) -> None:
    canvas = tiny.trainable()
    first, second, other = (validate(model.base, canvas, held_out(tmp_path, seed), num_samples=6) for seed in (3, 3, 4))
    assert first == second
    assert first != other
    assert first.gaps >= 6
    assert first.slots > first.gaps


def test_shares_are_shares_and_losses_are_positive(model: LoadedModel, tmp_path: Path) -> None:
    report = validate(model.base, tiny.trainable(), held_out(tmp_path), num_samples=6)
    accuracies = (report.masked_accuracy, report.frontier_accuracy, report.guided_frontier_accuracy)
    for share in (*accuracies, report.end_accuracy, report.corrected):
        assert 0 <= share <= 1
    assert min(report.masked_nll, report.frontier_nll, report.base_frontier_nll, report.guided_frontier_nll) > 0


def test_training_shows_in_the_scores(model: LoadedModel, tmp_path: Path) -> None:
    canvas = tiny.trainable()
    before = validate(model.base, canvas, held_out(tmp_path), num_samples=8)
    options = TrainOptions(minutes=5.0, max_steps=60, learning_rate=0.02, warmup_steps=5, batch_size=2, rank=4)
    drawing = source(tmp_path, batch_size=2, texts=(tiny.CODE,))
    trainer = Trainer(model.base, canvas, drawing, options)
    with Feed(drawing, 0, 0) as feed:
        for _ in range(options.max_steps):
            trainer.step(feed)
    after = validate(model.base, canvas, held_out(tmp_path), num_samples=8)
    assert after.masked_nll < before.masked_nll
    assert after.masked_accuracy > before.masked_accuracy
    # The base does not learn: what it says of the same gaps stays the same.
    assert after.base_frontier_nll == pytest.approx(before.base_frontier_nll)
