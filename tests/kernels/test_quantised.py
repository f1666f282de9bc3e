"""Rows in 8 bit."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lacuna_kernels import native
from lacuna_kernels.native import NativeKernels, PackedLinear
from lacuna_kernels.quantised import BLOCK, GROUP, LEAST, MOST, FourBitWeight, packed, quantized, unpacked


@given(st.lists(st.floats(-500, 500, width=32), min_size=1, max_size=16), st.integers(1, 3))
def test_each_number_is_kept_but_for_half_a_step_of_its_row(numbers: list[float], times: int) -> None:
    rows = torch.tensor([[number * factor for number in numbers] for factor in range(times)])
    codes, scales = packed(rows)
    assert (codes.dtype, scales.dtype) == (torch.int8, torch.float32)
    assert scales.shape == rows.shape[:-1]
    torch.testing.assert_close(scales, rows.abs().amax(-1) / MOST)
    found = unpacked(codes, scales, torch.float32)
    assert bool(((found - rows).abs() <= scales[:, None] * 0.501 + LEAST).all())


pytestmark = pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions")


def whole(generator: torch.Generator, low: int, high: int, *shape: int) -> Tensor:
    return torch.randint(low, high + 1, shape, generator=generator)


def weight(out: int, width: int, seed: int = 0, *, least: int = 0) -> FourBitWeight:
    """Random codes, scales and minima, each at least ``least``. With 63 each is the largest possible; 15 for codes."""
    generator, blocks = torch.Generator().manual_seed(seed), -(-width // BLOCK)
    return FourBitWeight(
        codes=whole(generator, min(least, 15), 15, out, width).to(torch.uint8),
        scale=whole(generator, least, 63, out, width // GROUP).to(torch.uint8),
        minimum=whole(generator, least, 63, out, width // GROUP).to(torch.uint8),
        step=(torch.rand((out, blocks), generator=generator) / (60 * width**0.5)).half().float(),
        lift=-(torch.rand((out, blocks), generator=generator) / (10 * width**0.5)).half().float(),
    )


def exact_rows(rows: int, width: int, seed: int) -> Tensor:
    """Activations that 8 bit holds exactly, because the first of every block is 127, the largest code."""
    x = whole(torch.Generator().manual_seed(seed), -127, 127, rows, width).float()
    x[:, ::BLOCK] = 127
    return x


def linear(kernels: NativeKernels, small: FourBitWeight, large: Tensor, bias: Tensor | None = None) -> PackedLinear:
    """A linear whose first outputs are ``small`` in 4 bit, and whose others are ``large`` in 8 bit with scale 1."""
    codes = kernels.packed(large.to(torch.int8))
    return kernels.bind(codes, torch.ones(len(large)), bias, kernels.packed_blocks(small))


@given(
    small=st.integers(1, 4),
    large=st.integers(0, 2),
    pairs=st.integers(1, 5 * BLOCK // (2 * GROUP)),
    rows=st.integers(1, 19),
    bias=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_a_linear_equals_a_product_with_its_dense_weight(
    kernels: NativeKernels, small: int, large: int, pairs: int, rows: int, bias: bool, seed: int
) -> None:
    width = 2 * GROUP * pairs
    first = weight(32 * small, width, seed)
    second = whole(torch.Generator().manual_seed(seed), -127, 127, 32 * large, width)
    added = torch.linspace(-1, 1, 32 * (small + large)) if bias else None
    x = exact_rows(rows, width, seed)
    got = kernels.linear(x, linear(kernels, first, second, added))
    dense = torch.cat((first.dense(), second)).double()
    expected = x.double() @ dense.T + (0 if added is None else added)
    # The rounding error of a float32 sum grows with the sum of the absolute products.
    most = x.double().abs() @ dense.abs().T
    assert ((got - expected).abs() <= 1e-6 * most + 1e-6).all()


@pytest.mark.parametrize("code", [0, 15])
@pytest.mark.parametrize("sign", [-1, 1])
def test_sums_of_the_largest_codes_do_not_overflow(kernels: NativeKernels, code: int, sign: int) -> None:
    small = weight(32, 2 * BLOCK, least=63)
    small = small._replace(codes=torch.full_like(small.codes, code))
    x = torch.full((3, 2 * BLOCK), sign * 127.0)
    got = kernels.linear(x, linear(kernels, small, torch.empty((0, 2 * BLOCK))))
    dense = small.dense().double().T
    assert ((got - x.double() @ dense).abs() <= 1e-6 * (x.double().abs() @ dense.abs())).all()


def test_an_outlier_affects_the_precision_of_its_own_block_only(kernels: NativeKernels) -> None:
    part, x = weight(64, 2 * BLOCK), torch.randn((3, 2 * BLOCK), generator=torch.Generator().manual_seed(0))
    packed, front = linear(kernels, part, torch.empty((0, 2 * BLOCK))), part.dense()[:, BLOCK:]
    x[:, 0] = 1e5
    dense = x[:, :1] @ part.dense()[:, :1].T
    x[:, 1:BLOCK] = 0
    got = kernels.linear(x, packed) - dense
    expected = x[:, BLOCK:] @ front.T
    assert (got - expected).norm() / expected.norm() < 0.02


@given(st.integers(1, 3 * BLOCK // (2 * GROUP)), st.floats(1e-6, 1e3), st.integers(0, 2**20))
def test_a_quantised_weight_is_near(pairs: int, size: float, seed: int) -> None:
    dense = torch.randn((5, 2 * GROUP * pairs), generator=torch.Generator().manual_seed(seed)) * size
    dense[0] = 0
    dense[1] = dense[1].abs()
    found = quantized(dense)
    assert int(found.codes.max()) <= 15
    assert int(found.scale.max()) <= 63
    assert torch.equal(found.dense()[0], dense[0])
    assert (found.dense() - dense).norm() / dense.norm() < 0.11
