import random

import pytest
import torch
from tests.model import tiny

from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.train.samples import Sample, SampleOptions, draw_sample
from lacuna_model.train.teacher import Reading, read_sample
from lacuna_model.transformer import NoStore


@pytest.fixture(params=range(6), ids=lambda seed: f"seed{seed}")
def read(model: LoadedModel, request: pytest.FixtureRequest) -> tuple[Sample, Reading]:
    options = SampleOptions(window_chars=250, max_gaps=5)
    sample = draw_sample(tiny.CODE, model.tokenizer, options, random.Random(request.param))
    assert sample is not None
    return sample, read_sample(model.base, sample)


def test_slots_are_read_as_an_ordinary_causal_pass_reads_them(model: LoadedModel, read: tuple[Sample, Reading]) -> None:
    sample, reading = read
    streams = {"before": sample.layout.before, "after": sample.layout.after}
    size = sample.targets.shape[1]
    assert reading.slot_hidden.shape == (*sample.targets.shape, tiny.CONFIG.hidden_size)
    for gap, targets, got in zip(sample.layout.gaps, sample.targets.tolist(), reading.slot_hidden, strict=True):
        stream = streams[gap.parent]
        ids = [*stream.ids[: gap.parent_len], *targets]
        positions = [*stream.positions[: gap.parent_len], *range(gap.position, gap.position + size)]
        mask = torch.ones((len(ids), len(ids)), dtype=torch.bool).tril()
        with torch.inference_mode():
            hidden = model.base.hidden(model.base.embed(torch.tensor([ids])), torch.tensor(positions), NoStore(), mask)
        torch.testing.assert_close(got, hidden[0, gap.parent_len - 1 : -1], atol=1e-4, rtol=1e-4)


def test_the_context_is_recorded_as_the_cache_would_hold_it(model: LoadedModel, read: tuple[Sample, Reading]) -> None:
    sample, reading = read
    cache = ContextCache(model.base)
    cache.update(sample.layout)
    num_before = len(sample.layout.before)
    for layer, (keys, values) in enumerate(reading.layers):
        assert keys.shape[2] == cache.length
        for recorded, held in ((keys[0], cache.arena.keys[layer]), (values[0], cache.arena.values[layer])):
            after, before = (cache.stream(name).offset for name in ("after", "before"))
            torch.testing.assert_close(
                recorded[:, :num_before], held[:, before : before + num_before], atol=1e-4, rtol=1e-4
            )
            torch.testing.assert_close(
                recorded[:, num_before:], held[:, after : after + cache.length - num_before], atol=1e-4, rtol=1e-4
            )


def test_reading_needs_no_gradient(read: tuple[Sample, Reading]) -> None:
    assert not read[1].slot_hidden.requires_grad
