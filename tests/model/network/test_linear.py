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


@pytest.mark.parametrize("rows", [1, 17])
def test_8_bit_is_close_to_dense_with_its_bias(rows: int) -> None:
    weight, bias, x = random(960, 576), random(960, seed=2), random(rows, 576, seed=1)
    got = Int8Linear(*quantize_rows(weight), bias)(x)
    assert (
        relative_error(got, torch.nn.functional.linear(x, weight, bias)) < 0.02
    )  # a CPU without VNNI uses 7 bits of x
