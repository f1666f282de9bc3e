import random

import msgspec
import numpy as np
import pytest
import torch
from tests.model import tiny
from torch import Tensor

from lacuna_model.adapter import TrainableCanvas
from lacuna_model.canvas import Canvas
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.train.batches import Batch, collate
from lacuna_model.train.masks import Copies, draw_copies
from lacuna_model.train.objective import LossOptions, Objective, Score, canvas_hidden, to_device
from lacuna_model.train.samples import Sample
from lacuna_model.train.teacher import read_batch
from lacuna_model.train.validation import slot_rows

from .train_tiny import SAMPLES, TOKENIZER, source

CPU = torch.device("cpu")
Pair = tuple[Sample, Copies]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    drawing = source(tmp_path_factory.mktemp("shards"))
    samples = [drawing.sample(i, random.Random(i)) for i in range(12)]
    return [(one, draw_copies(one, SAMPLES, TOKENIZER.vocab_size, random.Random(0))) for one in samples]


@pytest.fixture
def canvas() -> TrainableCanvas:
    """The canvas side while it is trained, with what the loaded model's canvas side has learnt."""
    canvas, learnt = tiny.trainable(), tiny.adapter()
    with torch.no_grad():
        for name, parameter in canvas.named_parameters():
            parameter.copy_(learnt[name.replace("/", ".")])
    return canvas


def collated(pairs: list[Pair]) -> Batch[Tensor]:
    return to_device(collate(pairs, SAMPLES, tiny.CONFIG.shift), CPU)


def logits(model: LoadedModel, canvas: TrainableCanvas, sample: Sample, copies: Copies) -> Tensor:
    """Logits [C, G, B, V] of every slot of every copy."""
    batch = collated([(sample, copies)])
    with torch.no_grad():
        hidden = canvas_hidden(canvas.transformer, canvas.mask_embedding, batch, read_batch(model.base, batch))
        found: Tensor = canvas.transformer.head(slot_rows(hidden[0], copies.masks.shape, tiny.CONFIG.shift))
        return found


@pytest.mark.parametrize("masked", ["all-masked", "some-visible"])
@pytest.mark.parametrize("index", range(8))
def test_training_sees_what_the_engine_sees(
    model: LoadedModel, canvas: TrainableCanvas, pairs: list[Pair], index: int, masked: str
) -> None:
    sample, _ = pairs[index]
    mask = np.ones(sample.targets.shape, dtype=np.bool_)
    if masked == "some-visible":
        mask = np.random.default_rng(index).random(mask.shape) < 0.5
    trained = logits(model, canvas, sample, Copies(mask[None], sample.targets[None]))[0]
    cache = ContextCache(model.base)
    cache.update(sample.layout)
    canvases = []
    for gap, targets, hidden in zip(sample.layout.gaps, sample.targets.tolist(), mask.tolist(), strict=True):
        opened = Canvas(gap, len(targets), len(targets))
        opened.open_block()
        opened.slots = [None if masked else token for token, masked in zip(targets, hidden, strict=True)]
        canvases.append(opened)
    with torch.inference_mode():
        drafted = torch.stack(list(tiny.reader(model, cache, sample.layout).draft(canvases)))
    torch.testing.assert_close(trained, drafted, atol=1e-4, rtol=1e-4)


def test_copies_do_not_see_each_other(model: LoadedModel, canvas: TrainableCanvas, pairs: list[Pair]) -> None:
    sample, copies = pairs[0]
    together = logits(model, canvas, sample, copies)
    for number in range(len(copies.masks)):
        alone = Copies(copies.masks[number : number + 1], copies.ids[number : number + 1])
        torch.testing.assert_close(together[number], logits(model, canvas, sample, alone)[0], atol=1e-4, rtol=1e-4)


def score(model: LoadedModel, canvas: TrainableCanvas, pairs: list[Pair], **options: float) -> Score:
    objective = Objective(model.base, canvas, LossOptions(**options), eog_id=TOKENIZER.eog_id)
    return objective.score(collated(pairs))


def test_a_batch_is_the_mean_of_its_samples(model: LoadedModel, canvas: TrainableCanvas, pairs: list[Pair]) -> None:
    together = score(model, canvas, pairs)
    together.loss.backward()
    gradients = {name: parameter.grad.clone() for name, parameter in canvas.named_parameters()}
    canvas.zero_grad()
    alone = [score(model, canvas, [pair]) for pair in pairs]
    torch.stack([one.loss for one in alone]).mean().backward()
    torch.testing.assert_close(together.loss, torch.stack([one.loss for one in alone]).mean(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(together.sums, torch.stack([one.sums for one in alone]).sum(0), atol=1e-3, rtol=1e-5)
    for name, parameter in canvas.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, atol=1e-5, rtol=1e-3)


def test_the_loss_is_what_the_definition_says(model: LoadedModel, canvas: TrainableCanvas, pairs: list[Pair]) -> None:
    """Slot by slot, from the base's logits and the canvas's, without rows, kinds or batches."""
    options = LossOptions(guided=0.4, visible=0.2, padding=0.1)
    for sample, copies in pairs[:4]:
        batch = collated([(sample, copies)])
        base = model.base.head(read_batch(model.base, batch).slot_hidden[0, : sample.targets.size])
        base = base.view(*sample.targets.shape, -1).softmax(-1)
        predicted = logits(model, canvas, sample, copies).log_softmax(-1)
        mixture = (predicted.exp() * base).sqrt()
        mixture[..., TOKENIZER.eog_id] = 0
        total = weights = 0.0
        for copy, gap, slot in np.ndindex(copies.masks.shape):
            target = int(sample.targets[gap, slot])
            row = predicted[copy, gap, slot]
            label = -float(row[target])
            if target != TOKENIZER.eog_id and copies.masks[copy, gap].tolist().index(True) == slot:
                guided = mixture[copy, gap, slot]
                label = 0.6 * label - 0.4 * float((guided[target] / guided.sum()).log())
            real = slot < sample.num_real[gap]
            weight = (1.0 if copies.masks[copy, gap, slot] else options.visible) if real else options.padding
            total, weights = total + weight * label, weights + weight
        got = score(model, canvas, [(sample, copies)], **msgspec.structs.asdict(options))
        assert float(got.loss.detach()) == pytest.approx(total / weights, rel=1e-4)


def test_the_sums_are_what_they_say(model: LoadedModel, canvas: TrainableCanvas, pairs: list[Pair]) -> None:
    for sample, copies in pairs:
        batch = collated([(sample, copies)])
        said = model.base.head(read_batch(model.base, batch).slot_hidden[0, : sample.targets.size]).log_softmax(-1)
        predicted = logits(model, canvas, sample, copies).log_softmax(-1)
        mixed = (predicted + said.view(*sample.targets.shape, -1)) / 2
        mixed[..., TOKENIZER.eog_id] = -torch.inf
        mixed = mixed.log_softmax(-1)
        masked, frontier, base_nll, nll, guided_nll = int((copies.masks & sample.real).sum()), 0, 0.0, 0.0, 0.0
        for copy, gap in np.ndindex(copies.masks.shape[:2]):
            slot = copies.masks[copy, gap].tolist().index(True)
            target = int(sample.targets[gap, slot])
            if slot < sample.num_real[gap] and target != TOKENIZER.eog_id:
                frontier += 1
                base_nll -= float(said.view(*sample.targets.shape, -1)[gap, slot, target])
                nll -= float(predicted[copy, gap, slot, target])
                guided_nll -= float(mixed[copy, gap, slot, target])
        found = score(model, canvas, [(sample, copies)]).sums.tolist()
        assert (found[0], found[3]) == (masked, frontier)
        assert 0 <= found[1] <= masked
        assert found[4:] == pytest.approx([nll, base_nll, guided_nll], rel=1e-4)


def test_the_loss_reaches_everything_that_learns_and_nothing_of_the_base(
    model: LoadedModel, canvas: TrainableCanvas, pairs: list[Pair]
) -> None:
    score(model, canvas, pairs[:2]).loss.backward()
    assert all(parameter.grad is not None for parameter in canvas.parameters())
    assert all(torch.isfinite(parameter.grad).all() for parameter in canvas.parameters())
    assert not any(tensor.requires_grad for tensor in tiny.state().values())


def test_attention_in_half_precision_is_close(model: LoadedModel, canvas: TrainableCanvas, pairs: list[Pair]) -> None:
    objective = Objective(model.base, canvas, LossOptions(), eog_id=TOKENIZER.eog_id, dtype=torch.bfloat16)
    half, full = objective.score(collated(pairs)).loss, score(model, canvas, pairs).loss
    assert float(half.detach()) == pytest.approx(float(full.detach()), rel=0.02)
