"""Products of few rows in Triton: on a GPU where there is one, else interpreted."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.on_gpu import DEVICE, random, same

pytest.importorskip("triton")

from lacuna_kernels import MAX_ROWS, reference
from lacuna_kernels.gpu.product import Addition, added_product, product

# Triton's interpreter truncates a float32 that a GPU rounds, and has no products in half precision.
CLOSE = {torch.float32: 1e-5, torch.bfloat16: 1e-4}


def codes(outputs: int, inputs: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(-127, 128, (outputs, inputs), generator=generator, dtype=torch.int8).to(DEVICE)


def assert_close(got: torch.Tensor, expected: torch.Tensor, close: float) -> None:
    assert got.isfinite().all()
    assert float((got - expected).norm() / expected.norm()) < close


@settings(max_examples=8)
@given(
    st.integers(1, MAX_ROWS),
    st.integers(1, 200),
    st.integers(1, 300),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_equals_the_reference(rows: int, outputs: int, inputs: int, dtype: torch.dtype) -> None:
    x, weight = random(rows, inputs, dtype=dtype), random(outputs, inputs, dtype=dtype, seed=1)
    assert_close(product(x, weight).sum(0), reference.product(x, weight), CLOSE[dtype])


@pytest.mark.parametrize("eight_bit", [False, True])
def test_a_rows_sums_do_not_depend_on_the_number_of_rows(eight_bit: bool) -> None:
    weight = codes(130, 700) if eight_bit else random(130, 700, dtype=torch.bfloat16, seed=1)
    scale = random(130, seed=3).abs() if eight_bit else None
    x = random(MAX_ROWS, 700, dtype=torch.bfloat16)
    every = product(x, weight, scale)
    for rows in (1, 4, 16, 17, 100):
        same(product(x[:rows], weight, scale), every[:, :rows])
        same(product(x[-rows:], weight, scale), every[:, -rows:])


@settings(max_examples=15)
@given(
    st.integers(1, 40), st.integers(1, 200), st.integers(1, 300), st.integers(1, 70), st.booleans(), st.integers(0, 40)
)
def test_an_addition_is_one_piece_more_in_rows_whose_gate_is_open(
    rows: int, outputs: int, inputs: int, rank: int, eight_bit: bool, closed: int
) -> None:
    """All other pieces are those of the product alone, bit for bit."""
    dtype = torch.bfloat16 if eight_bit else torch.float32
    x, high = random(rows, inputs, dtype=dtype), random(outputs, rank, dtype=dtype, seed=4)
    gate = (torch.arange(rows, device=DEVICE) >= closed).to(dtype)[:, None]
    if eight_bit:
        scales = random(outputs, seed=3).abs() + 0.1, random(rank, seed=5).abs() + 0.1
        weight, low = codes(outputs, inputs), codes(rank, inputs)
        found = added_product(x, weight, scales[0], Addition(low, scales[1], high), gate)
        expected, dense = product(x, weight, scales[0]), low.float() * scales[1][:, None]
    else:
        weight, dense = random(outputs, inputs, seed=1), random(rank, inputs, seed=2)
        found = added_product(x, weight, None, Addition(dense, None, high), gate)
        expected = product(x, weight)
    same(found[:-1], expected)
    assert not found[-1, :closed].any()
    if closed < rows:
        assert_close(found[-1], reference.addition(x, dense, high, gate), CLOSE[dtype] * 10)
