"""Where the rows of a pass lie in stores of keys and values, as data on the GPU.

The kernels read it from memory, so that one recorded graph of launches serves all stores and lengths, several stores in
one pass included.
"""

from dataclasses import dataclass

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

# Numbers of a row.
NUMBERS = tl.constexpr(7)


@triton.jit
def operand(b_x, dtype: tl.constexpr, WIDE: tl.constexpr):
    """An operand of a product in ``dtype``; ``WIDE``: in float32, since the interpreter multiplies no bfloat16."""
    return b_x.to(tl.float32) if WIDE else b_x.to(dtype)


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """The places of a pass's rows, for ``heads`` query heads and ``groups`` key heads of ``width``.

    ``data`` int64 [R, 7] has for each row the addresses of keys and values, the strides of a layer and of a group in
    elements, the row of the store that it takes, to how many rows of the store it attends, and the address of a list of
    these, int32 [n, 2], in the order in which they are added up, each with the number of positions that its token has
    moved since it was read. Rows that attend to 0 are padding: they write nothing. ``dtype`` is the stores'.
    """

    data: Tensor
    heads: int
    groups: int
    width: int
    dtype: torch.dtype


def numbers(
    keys: Tensor, values: Tensor, tail: int, counts: NDArray[np.int64], lists: NDArray[np.int64] | int = 0
) -> NDArray[np.int64]:
    """The numbers of :class:`RowPlaces` for rows at the ``tail`` of a store [L, G, K, D].

    Each attends to so many rows as ``counts`` [R] says, the first of the list at its address in ``lists`` [R].
    """
    if keys.stride() != values.stride() or keys.stride()[2:] != (keys.shape[3], 1):
        raise ValueError("keys and values must have their rows one after another")
    data = np.empty((len(counts), NUMBERS.value), dtype=np.int64)
    data[:, :4] = keys.data_ptr(), values.data_ptr(), keys.stride(0), keys.stride(1)
    data[:, 4] = np.arange(tail, tail + len(counts))
    data[:, 5], data[:, 6] = counts, lists
    return data
