"""Real rows are what the engine computes; rows of masks see their prompt up to the anchor, and each other."""

import dataclasses

import torch
from tests.model import tiny, tiny_masks
from tests.model.fim import tiny_fim

from lacuna_kernels.quantised import quantized
from lacuna_model.network.assembly import fuse
from lacuna_model.network.linear import MASKS
from training.base import Base, PlainOrder, Rows, unpacked

MODEL = tiny_fim.loaded()
BASE = Base(MODEL.config, fuse(tiny.state(MODEL.config, 0), MODEL.config))
IDS = torch.tensor([MODEL.tokenizer.encode(tiny.CODE)[:24], MODEL.tokenizer.encode(tiny.CODE)[24:48]])


def test_real_rows_are_those_of_the_engine() -> None:
    read = BASE.read(IDS)
    for ids, states in zip(IDS.tolist(), read.states, strict=True):
        assert torch.allclose(states @ BASE.head.T, tiny_fim.plain_logits(MODEL, ids), atol=1e-4)


def test_masks_are_those_of_the_engine() -> None:
    found = tiny_masks.tensors(MODEL.config)
    masks = tiny_masks.of(MODEL.config, found)
    reader = dataclasses.replace(MODEL, transformer=MODEL.layers.with_additions(MASKS, *masks)).tracks()
    text, behind = reader.new(), reader.new()
    text.become(IDS[0].tolist(), 0)
    behind.become([-1, -2, -3], IDS.shape[1])
    with torch.inference_mode():
        states = reader.read([[text], [text, behind]])[behind]
    rows = Rows(torch.tensor([0]), torch.full((1, 3), 23), torch.arange(1, 4)[None])
    assert torch.allclose(states, BASE.denoised(found["masks"], found, rows, BASE.read(IDS))[0], atol=1e-4)


def test_4_bit_weights_are_unpacked_to_what_they_were() -> None:
    for width in (256, 320, 896):
        weight = quantized(torch.randn((6, width), generator=torch.Generator().manual_seed(width)))
        found = unpacked(PlainOrder().packed_blocks(weight), width)
        assert torch.equal(found.codes, weight.codes)
        # Steps and lifts are rounded to float16, and a weight is at most a group's range from zero.
        assert (found.dense() - weight.dense()).abs().max() < weight.dense().abs().max() / 500
