import random

import pytest
import torch
from tests.model import tiny
from torch import Tensor

from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.train.batches import Batch, collate
from lacuna_model.train.masks import draw_copies
from lacuna_model.train.objective import to_device
from lacuna_model.train.samples import Sample
from lacuna_model.train.teacher import Reading, read_batch
from lacuna_model.transformer import NoStore

from .train_tiny import SAMPLES, TOKENIZER, source

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def read(model: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Sample], Batch[Tensor], Reading]:
    """Six samples read in one batch."""
    drawing = source(tmp_path_factory.mktemp("shards"))
    samples = [drawing.sample(i, random.Random(i)) for i in range(6)]
    pairs = [(one, draw_copies(one, SAMPLES, TOKENIZER.vocab_size, random.Random(0))) for one in samples]
    batch = to_device(collate(pairs, SAMPLES, shift=True), CPU)
    return samples, batch, read_batch(model.base, batch)


@pytest.mark.parametrize("index", range(6))
def test_slots_are_read_as_an_ordinary_causal_pass_reads_them(
    model: LoadedModel, read: tuple[list[Sample], Batch[Tensor], Reading], index: int
) -> None:
    samples, _, reading = read
    sample = samples[index]
    streams = {"before": sample.layout.before, "after": sample.layout.after}
    size = sample.targets.shape[1]
    states = reading.slot_hidden[index, : sample.targets.size].view(-1, size, tiny.CONFIG.hidden_size)
    for gap, targets, got in zip(sample.layout.gaps, sample.targets.tolist(), states, strict=True):
        stream = streams[gap.parent]
        ids = [*stream.ids[: gap.parent_len], *targets]
        positions = [*stream.positions[: gap.parent_len], *range(gap.position, gap.position + size)]
        mask = torch.ones((len(ids), len(ids)), dtype=torch.bool).tril()
        with torch.inference_mode():
            hidden = model.base.hidden(model.base.embed(torch.tensor([ids])), torch.tensor(positions), NoStore(), mask)
        torch.testing.assert_close(got, hidden[0, gap.parent_len - 1 : -1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("index", range(6))
def test_the_context_is_recorded_as_the_cache_would_hold_it(
    model: LoadedModel, read: tuple[list[Sample], Batch[Tensor], Reading], index: int
) -> None:
    samples, batch, reading = read
    cache = ContextCache(model.base)
    cache.update(samples[index].layout)
    for layer, (keys, values) in enumerate(reading.layers):
        assert keys.shape[2] == batch.num_context
        for number, name in enumerate(("before", "after")):
            own = torch.nonzero(batch.stream[index, : batch.num_context] == number)[:, 0]
            offset = cache.stream(name).offset
            for recorded, held in ((keys, cache.arena.keys), (values, cache.arena.values)):
                torch.testing.assert_close(
                    recorded[index][:, own], held[layer][:, offset : offset + len(own)], atol=1e-4, rtol=1e-4
                )


def test_reading_needs_no_gradient(read: tuple[list[Sample], Batch[Tensor], Reading]) -> None:
    assert not read[2].slot_hidden.requires_grad
