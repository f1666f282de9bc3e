"""Rows in 8 bit."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from lacuna_kernels.quantised import MOST, packed, unpacked


@given(st.lists(st.floats(-500, 500, width=32), min_size=1, max_size=16), st.integers(1, 3))
def test_each_number_is_kept_but_for_half_a_step_of_its_row(numbers: list[float], times: int) -> None:
    rows = torch.tensor([[number * factor for number in numbers] for factor in range(times)])
    codes, scales = packed(rows)
    assert (codes.dtype, scales.dtype) == (torch.int8, torch.float32)
    assert scales.shape == rows.shape[:-1]
    torch.testing.assert_close(scales, rows.abs().amax(-1) / MOST)
    found = unpacked(codes, scales, torch.float32)
    assert bool(((found - rows).abs() <= scales[:, None] * 0.501).all())


def test_a_row_of_zeros_stays_one() -> None:
    codes, scales = packed(torch.zeros((2, 4)))
    assert not unpacked(codes, scales, torch.bfloat16).any()
