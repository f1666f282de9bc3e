"""What the rows of a pass attend to: rows of their store, in the order of a text.

The order matters on a GPU, where attention adds keys up in blocks of it: so a row's result follows from the text before
it, and not from where a store keeps that. A mask has no order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class SeenRows:
    """Rows of a pass that are neighbours: each attends to the first of the rows ``order`` [n] of the store.

    ``counts`` [R] says to how many.
    """

    order: NDArray[np.int64]
    counts: NDArray[np.int64]


def in_order(tail: int, count: int) -> SeenRows:
    """What ``count`` rows at the ``tail`` of a store see where each attends to all rows up to its own."""
    return SeenRows(np.arange(tail + count), np.arange(tail + 1, tail + count + 1))


def of_mask(mask: Tensor) -> list[SeenRows]:
    """What rows with a bool mask [R, K] see, in the store's order."""
    orders = [row.nonzero()[0] for row in mask.numpy(force=True)]
    return [SeenRows(order, np.array([len(order)])) for order in orders]


def mask_of(seen: Sequence[SeenRows], width: int) -> Tensor:
    """The mask [R, width] of rows, in host memory."""
    mask = np.zeros((sum(len(one.counts) for one in seen), width), dtype=np.bool_)
    first = 0
    for one in seen:
        shown = mask[first : (first := first + len(one.counts))]
        least, most = int(one.counts.min()), int(one.counts.max())
        shown[:, one.order[:least]] = True
        shown[:, one.order[least:most]] = np.arange(least, most) < one.counts[:, None]
    return torch.from_numpy(mask)


def within(seen: Sequence[SeenRows], rows: range) -> list[SeenRows]:
    """What some neighbouring ones of all rows see."""
    found, first = list[SeenRows](), 0
    for one in seen:
        counts = one.counts[max(rows.start - first, 0) : max(rows.stop - first, 0)]
        if len(counts):
            found.append(SeenRows(one.order, counts))
        first += len(one.counts)
    return found
