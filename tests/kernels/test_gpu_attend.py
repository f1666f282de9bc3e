"""Attention of few rows over a long context in Triton: on a GPU where there is one, else interpreted."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.on_gpu import DEVICE, random, same

pytest.importorskip("triton")

from lacuna_kernels import reference
from lacuna_kernels.gpu.attend import KEYS, attend
from lacuna_kernels.gpu.heads import NUMBERS, RowPlaces, numbers
from lacuna_kernels.quantised import packed, unpacked

GROUPS, LAYER = 2, 1


def angles(width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines [100, D] of positions."""
    turned = torch.outer(torch.arange(100.0), 0.5 ** torch.arange(width // 2)).repeat(1, 2).to(DEVICE)
    return turned.cos(), turned.sin()


def placed(
    kept: torch.Tensor,
    tail: int,
    orders: Sequence[torch.Tensor],
    moved: torch.Tensor | None = None,
    scales: Sequence[torch.Tensor] = (),
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows at the tail of the store ``kept`` that see those of their ``orders``: their numbers, and all lists.

    The tokens of the store have ``moved`` so many positions. Each order is cut into two lists, at a place of its own.
    """
    counts = np.array([len(order) for order in orders])
    rows = torch.cat(list(orders))
    by = torch.zeros_like(rows) if moved is None else moved[rows]
    lists = torch.stack((rows, by), dim=1).to(DEVICE, torch.int32).repeat(2, 1, 1)
    firsts, cuts = counts.cumsum() - counts, counts * np.arange(len(counts)) // len(counts)
    for first, cut, count in zip(firsts, cuts, counts, strict=True):
        lists[0, first + cut : first + count] = lists[1, first : first + cut] = -1  # of the other list
    address = lists.data_ptr() + 8 * firsts
    places = np.stack((address, cuts, address + 8 * (len(rows) + cuts)), axis=1)
    return torch.from_numpy(numbers(kept[0], kept[1], tail, counts, places, scales)), lists


def attended(
    query: torch.Tensor,
    kept: torch.Tensor,
    tail: int,
    orders: Sequence[torch.Tensor],
    capacity: int = 0,
    moved: torch.Tensor | None = None,
    scales: Sequence[torch.Tensor] = (),
) -> torch.Tensor:
    """Attention of ``query`` [R, H, D] over the store ``kept`` [2, L, G, K, D]; rows without an order are padding."""
    padding = torch.zeros((len(query) - len(orders), NUMBERS.value), dtype=torch.int64)
    data, lists = placed(kept, tail, orders, moved, scales)
    _, heads, width = query.shape
    placed_rows = torch.cat([data, padding]).to(DEVICE)
    placement = RowPlaces(placed_rows, heads, GROUPS, width, query.dtype, eight_bit=len(scales) > 0)
    found = attend(query, placement, angles(query.shape[2]), LAYER, capacity or kept.shape[3])
    assert len(lists)  # it was there all the time
    return found


def orders_of(mask: torch.Tensor, length: int) -> list[torch.Tensor]:
    return [row.nonzero()[:, 0] for row in mask[:, :length]]


def expected(query: torch.Tensor, kept: torch.Tensor, mask: torch.Tensor, length: int) -> torch.Tensor:
    keys, values = kept[:, None, LAYER, :, :length].float()
    mixed = reference.attention(query.float().transpose(0, 1)[None], keys, values, mask[:, :length])
    return mixed[0].transpose(0, 1)


def seen(rows: int, columns: int, share: float) -> torch.Tensor:
    """A random mask in which every row attends to something."""
    mask = torch.rand((rows, columns), generator=torch.Generator().manual_seed(7)) < share
    mask[:, 0] = True
    return mask.to(DEVICE)


@settings(max_examples=8)
@given(
    st.integers(1, 9),
    st.integers(1, 7),
    st.sampled_from([8, 20, 32]),
    st.integers(0, 3 * KEYS),
    st.sampled_from([0.05, 0.5, 1.0]),
)
def test_equals_the_reference(rows: int, repeats: int, width: int, tail: int, share: float) -> None:
    query = random(rows, GROUPS * repeats, width)
    kept = random(2, 2, GROUPS, tail + rows + 5, width, seed=1)
    mask = seen(rows, tail + rows, share)
    got = attended(query, kept, tail, orders_of(mask, tail + rows))
    torch.testing.assert_close(got, expected(query, kept, mask, tail + rows), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("width", [16, 20])
def test_keys_whose_tokens_have_moved_are_rotated_as_far(width: int) -> None:
    query, kept = random(3, 2 * GROUPS, width), random(2, 2, GROUPS, 160, width, seed=1)
    mask, moved = seen(3, 150, 0.8), torch.zeros(160, dtype=torch.int64)
    moved[70:90], moved[120:140], moved[140:] = 7, -99, 3
    cos, sin = (one[moved.abs()] for one in angles(width))
    there = kept.clone()
    there[0] = reference.rotary(kept[0], cos, sin * moved.sign().to(DEVICE)[:, None])
    got = attended(query, kept, 147, orders_of(mask, 150), moved=moved.to(DEVICE))
    torch.testing.assert_close(got, expected(query, there, mask, 150), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("moves", [False, True])
def test_keys_and_values_in_8_bit(moves: bool) -> None:
    """As the reference over what was kept, and within 1 % of what was given, where bfloat16 is within 0.3 %."""
    query, kept = random(4, 3 * GROUPS, 64), random(2, 2, GROUPS, 200, 64, seed=1)
    mask, moved = seen(4, 190, 0.7), torch.zeros(200, dtype=torch.int64)
    if moves:
        moved[70:90], moved[120:140], moved[140:] = 7, -99, 3
    codes, scales = packed(kept)
    cos, sin = (one[moved.abs()] for one in angles(64))

    def there(store: torch.Tensor) -> torch.Tensor:
        turned = reference.rotary(store[0], cos, sin * moved.sign().to(DEVICE)[:, None])
        return torch.stack((turned, store[1]))

    got = attended(query, codes, 186, orders_of(mask, 190), moved=moved.to(DEVICE), scales=scales)
    wanted = expected(query, there(unpacked(codes, scales, torch.float32)), mask, 190)
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-4)
    exact = expected(query, there(kept), mask, 190)
    assert float((got - exact).norm() / exact.norm()) < 0.01


def test_padding_gets_zeros_and_a_row_the_same_beside_others_and_in_a_larger_store() -> None:
    query, kept = random(16, 3 * GROUPS, 16), random(2, 2, GROUPS, 150, 16, seed=1)
    larger = torch.cat([kept, random(2, 2, GROUPS, 2000, 16, seed=2)], dim=3)
    orders = orders_of(seen(16, 150, 0.5), 150)
    every = attended(query, kept, 134, orders)
    alone = attended(query, kept, 134, orders[:8])
    assert not alone[8:].any()
    same(alone[:8], every[:8])
    same(attended(query[3:5], kept, 140, orders[3:5]), every[3:5])
    same(attended(query, larger, 134, orders), every)
