"""Where the rows of a pass lie in stores of keys and values, as data on the GPU.

The kernels read it from memory, so that one recorded graph of launches serves all stores and lengths, several stores in
one pass included.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

# Numbers of a row.
NUMBERS = tl.constexpr(11)


@triton.jit
def operand(b_x, dtype: tl.constexpr, WIDE: tl.constexpr):
    """An operand of a product in ``dtype``; ``WIDE``: in float32, since the interpreter multiplies no bfloat16."""
    return b_x.to(tl.float32) if WIDE else b_x.to(dtype)


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """The places of a pass's rows, for ``heads`` query heads and ``groups`` key heads of ``width``.

    ``data`` int64 [R, 11] has for each row the addresses of keys and values, the strides of a layer and of a group in
    elements, the row of the store that it takes, to how many rows of the store it attends, and two lists of these, the
    second of which goes on where the first ends: the address and the length of the first, and the address of the
    second; and the addresses of the scales of keys and values, if the stores are in ``eight_bit``. A list, int32 [n,
    2], has rows in the order in which they are added up, each with the number of positions that its token has moved
    since it was read. Rows that attend to 0 are padding: they write nothing. Queries are in ``dtype``, and so are the
    stores if they are not in 8 bit (:mod:`lacuna_kernels.eight_bit`).
    """

    data: Tensor
    heads: int
    groups: int
    width: int
    dtype: torch.dtype
    eight_bit: bool = False


def numbers(
    keys: Tensor,
    values: Tensor,
    tail: int,
    counts: NDArray[np.int64],
    lists: NDArray[np.int64] | int = 0,
    scales: Sequence[Tensor] = (),
) -> NDArray[np.int64]:
    """The numbers of :class:`RowPlaces` for rows at the ``tail`` of a store [L, G, K, D], with ``scales`` [L, G, K].

    Each attends to so many rows as ``counts`` [R] says, the first of its two ``lists`` [R, 3].
    """
    if any(not one.is_contiguous() or one.shape != keys.shape[:3] for one in scales):
        raise ValueError("scales must be one for each row, in the order of the rows")
    if keys.stride() != values.stride() or keys.stride()[2:] != (keys.shape[3], 1):
        raise ValueError("keys and values must have their rows one after another")
    data = np.empty((len(counts), NUMBERS.value), dtype=np.int64)
    data[:, :4] = keys.data_ptr(), values.data_ptr(), keys.stride(0), keys.stride(1)
    data[:, 4] = np.arange(tail, tail + len(counts))
    data[:, 5], data[:, 6:9] = counts, lists
    data[:, 9:] = [one.data_ptr() for one in scales] or 0
    return data
