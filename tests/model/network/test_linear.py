import pytest
import torch

from lacuna_model.network.linear import DenseLinear, Int8Linear, quantize_rows


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    return float((got - expected).norm() / expected.norm())


def test_dense_keeps_the_precision_of_its_input() -> None:
    weight, bias, x = random(5, 8), random(5, seed=1), random(2, 3, 8, seed=2)
    assert torch.equal(DenseLinear(weight, bias)(x), torch.nn.functional.linear(x, weight, bias))
    assert DenseLinear(weight.bfloat16())(x).dtype == torch.float32


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
