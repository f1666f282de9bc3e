"""Rotary in Triton: on a GPU where there is one, else interpreted."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")

from lacuna_kernels import reference
from lacuna_kernels.gpu.elementwise import rotary

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


@settings(max_examples=4)
@given(
    st.integers(1, 3),
    st.integers(1, 40),
    st.integers(1, 64),
    st.integers(1, 50),
    st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_equals_the_reference(
    batch: int, heads: int, rows: int, half: int, dtype: torch.dtype, angles: torch.dtype
) -> None:
    # The memory layout of a layer: a row's heads are adjacent, and all of them share the angles of the row.
    x = random(batch, rows, heads, 2 * half, dtype=dtype).transpose(1, 2)
    cos, sin = random(2, batch, 1, rows, 2 * half, dtype=angles, seed=1)
    # The reference rounds after each step. Triton's interpreter truncates once, at the end.
    close = 1e-5 if angles is torch.float32 else 0.1
    torch.testing.assert_close(rotary(x, cos, sin), reference.rotary(x, cos, sin), atol=close, rtol=close)
