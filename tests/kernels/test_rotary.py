import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_kernels import rotary

WIDTH = 16
FREQUENCIES = 10_000.0 ** -(torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
POSITIONS = st.integers(0, 4000)


def turned(x: torch.Tensor, position: int) -> torch.Tensor:
    angles = (position * FREQUENCIES).repeat(2)
    return rotary(x, angles.cos(), angles.sin())


def vectors() -> torch.Tensor:
    return torch.randn((2, WIDTH), dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@settings(deadline=None)
@given(POSITIONS, POSITIONS, POSITIONS)
def test_dot_products_depend_only_on_the_difference_of_positions(first: int, second: int, shift: int) -> None:
    query, key = vectors()
    here = turned(query, first) @ turned(key, second)
    there = turned(query, first + shift) @ turned(key, second + shift)
    torch.testing.assert_close(here, there, atol=1e-9, rtol=1e-9)


def test_every_row_has_its_own_position() -> None:
    x = torch.randn((2, 3, WIDTH), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    angles = torch.outer(torch.tensor([5.0, 0.0, 700.0], dtype=torch.float64), FREQUENCIES).repeat(1, 2)
    expected = torch.stack([turned(x[:, i], at) for i, at in enumerate((5, 0, 700))], dim=1)
    torch.testing.assert_close(rotary(x, angles.cos(), angles.sin()), expected)
