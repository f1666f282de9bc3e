from pathlib import Path

import pytest
import torch

from lacuna_kernels import native
from lacuna_model.network.linear import DenseLinear, Int8Linear, NativeLinear, quantize_rows


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    return float((got - expected).norm() / expected.norm())


def test_dense_keeps_the_precision_of_its_input() -> None:
    weight, bias, x = random(5, 8), random(5, seed=1), random(2, 3, 8, seed=2)
    assert torch.equal(DenseLinear(weight, bias)(x), torch.nn.functional.linear(x, weight, bias))
    assert DenseLinear(weight.bfloat16())(x).dtype == torch.float32


def test_quantised_rows_are_within_half_a_step() -> None:
    weight = random(7, 33) * torch.logspace(-3, 3, 7)[:, None]
    codes, scale = quantize_rows(weight)
    assert codes.dtype == torch.int8
    assert ((codes * scale[:, None] - weight).abs() <= 0.5001 * scale[:, None]).all()


def test_a_row_of_zeros_stays_zero() -> None:
    codes, scale = quantize_rows(torch.zeros((2, 4)))
    assert torch.equal(codes * scale[:, None], torch.zeros((2, 4)))


@pytest.mark.parametrize(
    "shape", [(1, 576, 960), (17, 576, 576), (3, 48, 10)], ids=["R1-I576-O960", "R17-I576-O576", "R3-I48-O10"]
)
def test_8_bit_is_close_to_dense(shape: tuple[int, int, int]) -> None:
    rows, width, out = shape
    weight, x = random(out, width), random(rows, width, seed=1)
    got = Int8Linear(*quantize_rows(weight))(x)
    assert got.shape == (rows, out)
    assert relative_error(got, x @ weight.T) < 0.02  # a CPU without VNNI uses 7 bits of the activations


def test_8_bit_adds_its_bias() -> None:
    weight, bias, x = random(10, 48), random(10, seed=2), random(3, 48, seed=1)
    got = Int8Linear(*quantize_rows(weight), bias)(x)
    assert relative_error(got, torch.nn.functional.linear(x, weight, bias)) < 0.015


@pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions")
def test_the_native_kernel_is_close_to_dense(tmp_path: Path) -> None:
    weight, bias, x = random(64, 96), random(64, seed=2), random(3, 96, seed=1)
    got = NativeLinear(native.build(tmp_path), *quantize_rows(weight), bias)(x)
    assert relative_error(got, torch.nn.functional.linear(x, weight, bias)) < 0.015


def test_an_outlier_row_does_not_affect_the_others() -> None:
    weight, x = random(64, 48), random(8, 48, seed=1)
    linear = Int8Linear(*quantize_rows(weight))
    alone = linear(x.clone())
    x[3] *= 10_000
    beside = linear(x)
    others = [i for i in range(8) if i != 3]
    torch.testing.assert_close(beside[others], alone[others], atol=1e-2, rtol=1e-2)
    assert relative_error(beside[3], x[3] @ weight.T) < 0.015


def test_8_bit_takes_a_row_of_zeros() -> None:
    assert torch.equal(Int8Linear(*quantize_rows(random(4, 8)))(torch.zeros((2, 8))), torch.zeros((2, 4)))
