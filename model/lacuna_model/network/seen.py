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


@dataclass(eq=False, slots=True)
class RowList:
    """Rows of a store [n], which do not change, in the order of a text.

    The token of each has ``moved`` [n] by so many positions since it was read; None: none has.
    """

    rows: NDArray[np.int64]
    moved: NDArray[np.int64] | None = None
    _there: Tensor | None = None

    def write(self, block: NDArray[np.int32]) -> None:
        """Put rows and distances into a block [n, 2]."""
        block[:, 0], block[:, 1] = self.rows, 0 if self.moved is None else self.moved

    def on(self, device: torch.device) -> Tensor:
        """Rows and distances, int32 [n, 2], on a device; they are brought there once."""
        if self._there is None:
            block = np.empty((len(self.rows), 2), dtype=np.int32)
            self.write(block)
            self._there = torch.from_numpy(block).to(device)
        return self._there


NO_ROWS = RowList(np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class SeenRows:
    """Rows of a pass that are neighbours: each attends to the first of the rows ``before``, and then of ``own``.

    ``counts`` [R] says to how many. Those ``before`` are the same from pass to pass, for the most part.
    """

    before: RowList
    own: RowList
    counts: NDArray[np.int64]

    @property
    def order(self) -> NDArray[np.int64]:
        """All these rows of the store."""
        return np.concatenate((self.before.rows, self.own.rows))


def in_order(tail: int, count: int) -> SeenRows:
    """What ``count`` rows at the ``tail`` of a store see where each attends to all rows up to its own."""
    return SeenRows(NO_ROWS, RowList(np.arange(tail + count)), np.arange(tail + 1, tail + count + 1))


def of_mask(mask: Tensor) -> list[SeenRows]:
    """What rows with a bool mask [R, K] see, in the store's order."""
    orders = [row.nonzero()[0] for row in mask.numpy(force=True)]
    return [SeenRows(NO_ROWS, RowList(order), np.array([len(order)])) for order in orders]


def mask_of(seen: Sequence[SeenRows], width: int) -> Tensor:
    """The mask [R, width] of rows, in host memory."""
    mask = np.zeros((sum(len(one.counts) for one in seen), width), dtype=np.bool_)
    first = 0
    for one in seen:
        shown = mask[first : (first := first + len(one.counts))]
        order, least, most = one.order, int(one.counts.min()), int(one.counts.max())
        shown[:, order[:least]] = True
        shown[:, order[least:most]] = np.arange(least, most) < one.counts[:, None]
    return torch.from_numpy(mask)


def within(seen: Sequence[SeenRows], rows: range) -> list[SeenRows]:
    """What some neighbouring ones of all rows see."""
    found, first = list[SeenRows](), 0
    for one in seen:
        counts = one.counts[max(rows.start - first, 0) : max(rows.stop - first, 0)]
        if len(counts):
            found.append(SeenRows(one.before, one.own, counts))
        first += len(one.counts)
    return found
