import pytest
from tests.model import tiny

from lacuna_model.loader import LoadedModel
from lacuna_model.train.loop import Trainer, TrainOptions
from lacuna_model.train.samples import SampleOptions
from lacuna_model.train.validation import validate

DOCUMENTS = (tiny.CODE,)


def test_the_same_seed_scores_the_same_gaps(model: LoadedModel) -> None:
    canvas = tiny.trainable()
    first, second, other = (
        validate(model.base, canvas, model.tokenizer, DOCUMENTS, num_samples=6, seed=seed, window_chars=300)
        for seed in (3, 3, 4)
    )
    assert first == second
    assert first != other
    assert first.gaps >= 6
    assert first.slots > first.gaps


def test_shares_are_shares_and_losses_are_positive(model: LoadedModel) -> None:
    report = validate(model.base, tiny.trainable(), model.tokenizer, DOCUMENTS, num_samples=6, window_chars=300)
    for share in (report.masked_accuracy, report.frontier_accuracy, report.end_accuracy, report.corrected):
        assert 0 <= share <= 1
    assert min(report.masked_nll, report.frontier_nll, report.base_frontier_nll) > 0


def test_training_shows_in_the_scores(model: LoadedModel) -> None:
    canvas = tiny.trainable()
    before = validate(model.base, canvas, model.tokenizer, DOCUMENTS, num_samples=8, window_chars=200)
    options = TrainOptions(minutes=5.0, max_steps=60, learning_rate=0.02, warmup_steps=5, samples_per_step=2, rank=4)
    sampling = SampleOptions(window_chars=200, max_gaps=3)
    trainer = Trainer(model.base, canvas, model.tokenizer, DOCUMENTS, options, sampling=sampling)
    for _ in range(options.max_steps):
        trainer.step()
    after = validate(model.base, canvas, model.tokenizer, DOCUMENTS, num_samples=8, window_chars=200)
    assert after.masked_nll < before.masked_nll
    assert after.masked_accuracy > before.masked_accuracy
    # The base does not learn: what it says of the same gaps stays the same.
    assert after.base_frontier_nll == pytest.approx(before.base_frontier_nll)
