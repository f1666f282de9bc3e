"""RMSNorm and the gate of a feed-forward block in Triton: on a GPU where there is one, else interpreted."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.on_gpu import random

pytest.importorskip("triton")

from lacuna_kernels import reference
from lacuna_kernels.gpu.elementwise import add_rms_norm, gate, rms_norm

DTYPES = st.sampled_from([torch.float32, torch.float16, torch.bfloat16])
# Triton's interpreter truncates a float32 that a GPU rounds: a bfloat16 may differ in its last bit.
CLOSE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


@settings(max_examples=15)
@given(st.integers(1, 64), st.integers(1, 700), DTYPES, DTYPES)
def test_the_norm_equals_the_reference(rows: int, width: int, dtype: torch.dtype, weights: torch.dtype) -> None:
    x, weight = 10 * random(rows, width, dtype=dtype), random(width, dtype=weights, seed=1)
    expected, close = reference.rms_norm(x, weight, 1e-5), max(CLOSE[dtype], CLOSE[weights])
    torch.testing.assert_close(rms_norm(x, weight, 1e-5), expected, atol=close, rtol=close)


@settings(max_examples=15)
@given(st.integers(1, 64), st.integers(1, 700), DTYPES)
def test_sum_and_norm_equal_the_reference(rows: int, width: int, dtype: torch.dtype) -> None:
    x, update = random(rows, width, dtype=dtype), random(rows, width, dtype=dtype, seed=1)
    weight = random(width, seed=2)
    pairs = zip(add_rms_norm(x, update, weight, 1e-5), reference.add_rms_norm(x, update, weight, 1e-5), strict=True)
    for got, expected in pairs:
        # The interpreter's truncation error in the sum carries over into the norm.
        torch.testing.assert_close(got, expected, atol=2 * CLOSE[dtype], rtol=2 * CLOSE[dtype])


@settings(max_examples=15)
@given(st.integers(1, 4), st.integers(1, 20), st.integers(1, 1100), st.sampled_from([torch.float32, torch.bfloat16]))
def test_the_gate_equals_the_reference(pieces: int, rows: int, width: int, dtype: torch.dtype) -> None:
    states = 3 * random(pieces, rows, 2 * width)
    got, expected = gate(states, dtype), reference.gate(states.sum(0))
    assert got.dtype is dtype
    torch.testing.assert_close(got.float(), expected, atol=CLOSE[dtype], rtol=CLOSE[dtype])
