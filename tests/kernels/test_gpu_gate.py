"""The gate of a feed-forward block in Triton: on a GPU where there is one, else interpreted."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")

from lacuna_kernels import reference
from lacuna_kernels.gpu.elementwise import gate

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@settings(max_examples=15)
@given(st.integers(1, 4), st.integers(1, 20), st.integers(1, 1100), st.sampled_from([torch.float32, torch.bfloat16]))
def test_equals_the_reference(pieces: int, rows: int, width: int, dtype: torch.dtype) -> None:
    states = 3 * torch.randn((pieces, rows, 2 * width), generator=torch.Generator().manual_seed(0)).to(DEVICE)
    got, expected = gate(states, dtype), reference.gate(states.sum(0))
    assert got.dtype is dtype
    close = 1e-5 if dtype is torch.float32 else 1.6e-2
    torch.testing.assert_close(got.float(), expected, atol=close, rtol=close)
