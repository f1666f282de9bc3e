"""Heads in Triton, from a product's sums to queries and a store: on a GPU where there is one, else interpreted."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.on_gpu import DEVICE, random

pytest.importorskip("triton")

from lacuna_kernels import reference
from lacuna_kernels.gpu.heads import NUMBERS, RowPlaces, numbers, place_heads
from lacuna_kernels.quantised import packed

LAYERS, CAPACITY, POSITIONS = 3, 40, 50


def described(
    keys: torch.Tensor, values: torch.Tensor, tail: int, count: int, scales: Sequence[torch.Tensor] = ()
) -> torch.Tensor:
    """The numbers of rows at the tail of a store; what they see is for attention."""
    return torch.from_numpy(numbers(keys, values, tail, np.full(count, tail + count), scales=scales))


def store(groups: int, width: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    keys, values = random(2, LAYERS, groups, CAPACITY, width, dtype=dtype, seed=9)
    return keys, values


@settings(max_examples=8)
@given(
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 5),
    st.sampled_from([4, 10, 16]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
)
def test_equals_the_reference_and_writes_nothing_else(
    rows: int, pieces: int, groups: int, repeats: int, width: int, biased: bool, normed: bool, padding: int
) -> None:
    heads, tail, layer = groups * repeats, 7, 1
    states = random(pieces, rows + padding, (heads + 2 * groups) * width)
    bias = random(states.shape[-1], seed=1) if biased else None
    norms = (random(width, seed=2), random(width, seed=3), 1e-6) if normed else None
    cos, sin = random(2, POSITIONS, width, seed=4)
    positions = torch.randint(POSITIONS, (rows + padding,), generator=torch.Generator().manual_seed(5)).to(DEVICE)
    keys, values = store(groups, width, torch.float32)
    before = keys.clone(), values.clone()
    unplaced = torch.zeros((padding, NUMBERS.value), dtype=torch.int64)
    data = torch.cat([described(keys, values, tail, rows), unplaced]).to(DEVICE)
    placement = RowPlaces(data, heads, groups, width, torch.float32)
    query = place_heads(states, bias, norms, (cos, sin), positions, placement, layer)
    expected, key, value = reference.heads(states.sum(0), bias, norms, (cos[positions], sin[positions]), groups)
    torch.testing.assert_close(query, expected, atol=1e-5, rtol=1e-5)
    for got, kept, wanted in zip((keys, values), before, (key, value), strict=True):
        kept[layer, :, tail : tail + rows] = wanted[:rows].transpose(0, 1)
        torch.testing.assert_close(got, kept, atol=1e-5, rtol=1e-5)


def test_keys_and_values_in_8_bit_are_those_of_the_reference_and_nothing_else_is_written() -> None:
    groups, width, tail, layer = 2, 20, 7, 1
    states, (cos, sin) = random(2, 5, 8 * width), random(2, POSITIONS, width, seed=4)
    states[:, 2] = 0.0  # a row of zeros
    keys, values = (torch.full((LAYERS, groups, CAPACITY, width), 3, dtype=torch.int8, device=DEVICE) for _ in "kv")
    scales = [torch.full(keys.shape[:3], 2.0, device=DEVICE) for _ in "kv"]
    positions, padding = torch.arange(5, device=DEVICE), torch.zeros((1, NUMBERS.value), dtype=torch.int64)
    data = torch.cat([described(keys, values, tail, 4, scales), padding]).to(DEVICE)
    placement = RowPlaces(data, 4, groups, width, torch.float32, eight_bit=True)
    query = place_heads(states, None, None, (cos, sin), positions, placement, layer)
    expected, key, value = reference.heads(states.sum(0), None, None, (cos[positions], sin[positions]), groups)
    torch.testing.assert_close(query, expected, atol=1e-5, rtol=1e-5)
    for store, scale, rows in zip((keys, values), scales, (key, value), strict=True):
        wanted, steps = torch.full_like(store, 3), torch.full_like(scale, 2.0)
        wanted[layer, :, tail : tail + 4], steps[layer, :, tail : tail + 4] = packed(rows[:4].transpose(0, 1))
        assert (
            int((store.int() - wanted.int()).abs().max()) <= 1
        )  # a sum in another order may be rounded to another code
        assert float((store != wanted).float().mean()) < 0.01
        torch.testing.assert_close(scale, steps, atol=1e-6, rtol=1e-5)
