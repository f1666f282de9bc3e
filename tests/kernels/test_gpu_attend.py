"""Attention of few rows over a long context in Triton: on a GPU where there is one, else interpreted."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")

from lacuna_kernels import reference
from lacuna_kernels.gpu.attend import KEYS, MERGED, attend
from lacuna_kernels.gpu.placement import RowPlaces, described

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GROUPS, LAYER = 2, 1


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


def same(one: torch.Tensor, other: torch.Tensor) -> None:
    """On a GPU to the last bit; the interpreter multiplies by numpy, whose sums depend on a row's place."""
    close = 0.0 if DEVICE == "cuda" else 1e-6
    torch.testing.assert_close(one, other, atol=close, rtol=10 * close)


def attended(query: torch.Tensor, kept: torch.Tensor, mask: torch.Tensor, tail: int, count: int) -> torch.Tensor:
    """Attention of ``query`` [R, H, D] over the store ``kept`` [2, L, G, K, D]."""
    padding = torch.zeros((len(query) - count, 6), dtype=torch.int64)
    data = torch.cat([described(kept[0], kept[1], tail, count), padding]).to(DEVICE)
    placement = RowPlaces(data, query.shape[1], GROUPS, query.shape[2], query.dtype)
    return attend(query, placement, mask, LAYER, kept.shape[3])


def expected(query: torch.Tensor, kept: torch.Tensor, mask: torch.Tensor, length: int) -> torch.Tensor:
    keys, values = kept[:, None, LAYER, :, :length].float()
    mixed = reference.attention(query.float().transpose(0, 1)[None], keys, values, mask[:, :length])
    return mixed[0].transpose(0, 1)


def seen(rows: int, columns: int, share: float) -> torch.Tensor:
    """A random mask in which every row attends to something."""
    mask = torch.rand((rows, columns), generator=torch.Generator().manual_seed(7)) < share
    mask[:, 0] = True
    return mask.to(DEVICE)


@settings(max_examples=12)
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
    got = attended(query, kept, mask, tail, rows)
    torch.testing.assert_close(got, expected(query, kept, mask, tail + rows), atol=1e-5, rtol=1e-4)


def test_rows_of_several_stores() -> None:
    query, mask = random(3, 2 * GROUPS, 16), seen(3, 80, 0.5)
    stores = [random(2, 2, GROUPS, size, 16, seed=size) for size in (70, 90)]
    data = torch.cat([described(*stores[0], 60, 1), described(*stores[1], 78, 2)]).to(DEVICE)
    got = attend(query, RowPlaces(data, 2 * GROUPS, GROUPS, 16, query.dtype), mask, LAYER, 90)
    for rows, store, length in ((slice(0, 1), stores[0], 61), (slice(1, 3), stores[1], 80)):
        wanted = expected(query[rows], store, mask[rows], length)
        torch.testing.assert_close(got[rows], wanted, atol=1e-5, rtol=1e-4)


def test_more_blocks_than_are_merged_at_once() -> None:
    tail = KEYS * MERGED + 11
    query, kept = random(2, GROUPS, 16), random(2, 2, GROUPS, tail + 2, 16, seed=1)
    mask = seen(2, tail + 2, 0.3)
    mask[0, : KEYS * MERGED] = False  # the first blocks say nothing about this row
    got = attended(query, kept, mask, tail, 2)
    torch.testing.assert_close(got, expected(query, kept, mask, tail + 2), atol=1e-5, rtol=1e-4)


def test_bfloat16_stays_close() -> None:
    query = random(4, 3 * GROUPS, 64, dtype=torch.bfloat16)
    kept = random(2, 2, GROUPS, 200, 64, dtype=torch.bfloat16, seed=1)
    mask = seen(4, 190, 0.7)
    got, wanted = attended(query, kept, mask, 186, 4).float(), expected(query, kept, mask, 190)
    assert float((got - wanted).norm() / wanted.norm()) < 0.02


def test_padding_gets_zeros_and_a_row_the_same_beside_others_and_in_a_larger_store() -> None:
    query, kept = random(16, 3 * GROUPS, 16), random(2, 2, GROUPS, 150, 16, seed=1)
    mask, larger = seen(16, 150, 0.5), torch.cat([kept, random(2, 2, GROUPS, 2000, 16, seed=2)], dim=3)
    every = attended(query, kept, mask, 134, 16)
    # Eight rows of the same pass, which end at another row of the store; the mask hides the difference.
    mask[:, 142:] = False
    alone = attended(query, kept, mask, 134, 8)
    assert not alone[8:].any()
    again = attended(query, kept, mask, 134, 16)
    same(alone[:8], again[:8])
    same(attended(query[3:5], kept, mask[3:5], 140, 2), again[3:5])
    same(attended(query, larger, mask, 134, 16), again)
    assert not torch.equal(every, again)
