"""Four-bit weights in plain order are made dense as they were."""

import torch

from lacuna_kernels.quantised import quantized
from training.masks.plain import PlainOrder, unpacked


def test_4_bit_weights_are_unpacked_to_what_they_were() -> None:
    for width in (256, 320, 896):
        weight = quantized(torch.randn((6, width), generator=torch.Generator().manual_seed(width)))
        found = unpacked(PlainOrder().packed_blocks(weight), width)
        assert torch.equal(found.codes, weight.codes)
        # Steps and lifts are rounded to float16, and a weight is at most a group's range from zero.
        assert (found.dense() - weight.dense()).abs().max() < weight.dense().abs().max() / 500
