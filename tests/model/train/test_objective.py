import random

import pytest
import torch
from tests.model import tiny
from torch import Tensor

from lacuna_model.adapter import TrainableCanvas
from lacuna_model.canvas import Canvas
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.train.objective import LossOptions, Score, canvas_logits, complementary_masks, sample_loss
from lacuna_model.train.samples import Sample, SampleOptions, draw_sample
from lacuna_model.train.teacher import read_sample

OPTIONS = SampleOptions(window_chars=250, max_gaps=5)


def drawn(model: LoadedModel, seed: int) -> Sample:
    sample = draw_sample(tiny.CODE, model.tokenizer, OPTIONS, random.Random(seed))
    assert sample is not None
    return sample


@pytest.fixture
def canvas() -> TrainableCanvas:
    """The canvas side while it is trained, with what the loaded model's canvas side has learnt."""
    canvas, learnt = tiny.trainable(), tiny.adapter()
    with torch.no_grad():
        for name, parameter in canvas.named_parameters():
            parameter.copy_(learnt[name.replace("/", ".")])
    return canvas


@pytest.mark.parametrize("masked", ["all-masked", "some-visible"])
@pytest.mark.parametrize("seed", range(8))
def test_training_sees_what_the_engine_sees(
    model: LoadedModel, canvas: TrainableCanvas, seed: int, masked: str
) -> None:
    sample = drawn(model, seed)
    mask = torch.ones_like(sample.targets, dtype=torch.bool)
    if masked == "some-visible":
        mask = torch.rand(mask.shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    wanted = torch.ones((1, *mask.shape), dtype=torch.bool)
    with torch.no_grad():
        trained = canvas_logits(
            canvas, sample, read_sample(model.base, sample), sample.targets[None], mask[None], wanted
        )
    cache = ContextCache(model.base)
    cache.update(sample.layout)
    canvases = []
    for gap, targets, hidden in zip(sample.layout.gaps, sample.targets.tolist(), mask.tolist(), strict=True):
        opened = Canvas(gap, len(targets), len(targets))
        opened.open_block()
        opened.slots = [None if masked else token for token, masked in zip(targets, hidden, strict=True)]
        canvases.append(opened)
    with torch.inference_mode():
        drafted = torch.cat(tiny.reader(model, cache, sample.layout)._draft(canvases))
    torch.testing.assert_close(trained, drafted, atol=1e-4, rtol=1e-4)


def test_copies_do_not_see_each_other(model: LoadedModel, canvas: TrainableCanvas) -> None:
    sample = drawn(model, 0)
    reading, masks = read_sample(model.base, sample), complementary_masks(sample, random.Random(0))
    ids, wanted = sample.targets.expand_as(masks), torch.ones_like(masks)
    with torch.no_grad():
        together = canvas_logits(canvas, sample, reading, ids, masks, wanted)
        alone = [canvas_logits(canvas, sample, reading, ids[i : i + 1], masks[i : i + 1], wanted[:1]) for i in (0, 1)]
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-4, rtol=1e-4)


def test_complementary_masks_cover_every_real_slot(model: LoadedModel) -> None:
    for seed in range(300):
        sample = drawn(model, seed)
        masks = complementary_masks(sample, random.Random(seed))
        real = torch.arange(masks.shape[2]) < sample.num_real[:, None]
        assert masks.any(dim=0)[real].all()
        assert (masks & real).any(dim=2).all()
        # No real slot is masked twice, but where the complement of a gap would mask nothing real.
        twice = (masks.all(dim=0) & real).any(dim=1)
        assert torch.equal(twice, (masks[0] | ~real).all(dim=1))


def score(model: LoadedModel, canvas: TrainableCanvas, seed: int, **options: float) -> Score:
    return sample_loss(
        model.base,
        canvas,
        drawn(model, seed),
        LossOptions(**options),
        OPTIONS,
        model.tokenizer.eog_id,
        random.Random(seed),
    )


def test_the_loss_reaches_everything_that_learns_and_nothing_of_the_base(
    model: LoadedModel, canvas: TrainableCanvas
) -> None:
    score(model, canvas, 0).loss.backward()
    assert all(parameter.grad is not None for parameter in canvas.parameters())
    assert all(torch.isfinite(parameter.grad).all() for parameter in canvas.parameters())
    assert not any(tensor.requires_grad for tensor in tiny.state().values())


def test_hard_labels_alone_are_the_plain_cross_entropy(model: LoadedModel, canvas: TrainableCanvas) -> None:
    got = score(model, canvas, 3, soft=0.0, visible=0.0, padding=0.0)
    # All slots that count are masked and real then.
    torch.testing.assert_close(float(got.loss.detach()), got.masked_nll / got.masked, atol=1e-4, rtol=1e-4)


def test_counts(model: LoadedModel, canvas: TrainableCanvas) -> None:
    for seed in range(30):
        got = score(model, canvas, seed)
        sample = drawn(model, seed)
        assert int(sample.num_real.sum()) <= got.masked <= 2 * int(sample.num_real.sum())
        assert 0 <= got.correct <= got.masked
        assert got.frontier <= 2 * len(sample.num_real)
        assert got.loss.isfinite()


def test_the_base_is_scored_at_the_first_open_slot_of_every_gap(model: LoadedModel, canvas: TrainableCanvas) -> None:
    for seed in range(10):
        sample, frontier, nll = drawn(model, seed), 0, 0.0
        hidden = read_sample(model.base, sample).slot_hidden
        for mask in complementary_masks(sample, random.Random(seed)).tolist():
            for gap, slots in enumerate(mask):
                slot = slots.index(True)
                target = int(sample.targets[gap, slot])
                if slot < sample.num_real[gap] and target != model.tokenizer.eog_id:
                    frontier += 1
                    nll -= float(model.base.head(hidden[gap, slot]).log_softmax(-1)[target])
        got = score(model, canvas, seed)
        assert got.frontier == frontier
        assert got.base_nll == pytest.approx(nll, rel=1e-4)


def test_the_same_generator_gives_the_same_loss(model: LoadedModel, canvas: TrainableCanvas) -> None:
    one, other = (score(model, canvas, 5) for _ in range(2))
    assert torch.equal(one.loss, other.loss)
    assert (one.masked, one.correct, one.base_nll) == (other.masked, other.correct, other.base_nll)


def test_soft_labels_pull_towards_the_base(model: LoadedModel) -> None:
    """Trained on soft labels alone, the canvas comes to say what the base says."""
    canvas = tiny.trainable(rank=8)
    optimizer = torch.optim.Adam(canvas.parameters(), lr=0.01)
    losses: list[Tensor] = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = score(model, canvas, 2, soft=1.0).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    assert losses[-1] < losses[0]
