"""Keys whose tokens have been moved to other positions since they were read.

A key is rotated once, for the position at which its token was read, and rounded once. Where the token has moved since,
the query is rotated as if it had moved as far the other way: scores depend on the distance alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import rotary
from lacuna_model.network.seen import SeenRows


@dataclass(frozen=True, slots=True)
class Rotation:
    """Keys of some ``rows`` [n] of a store, to be rotated by ``cos`` and ``sin`` [n, D]."""

    rows: Tensor
    cos: Tensor
    sin: Tensor

    def __call__(self, keys: Tensor) -> Tensor:
        """A copy of ``keys`` [.., K, D] with those rotated; it is not stored, so that a key is rounded from its own."""
        turned = rotary(keys[..., self.rows, :].float(), self.cos, self.sin)
        return keys.index_copy(-2, self.rows, turned.to(keys.dtype))


@dataclass(frozen=True)
class MovedKeys:
    """By how many positions each key of a store has ``moved`` [K] since it was read.

    Those that no row of the pass has ``seen`` count as not moved; where that is empty, all are seen.
    """

    moved: NDArray[np.int64]
    seen: Sequence[SeenRows] = ()

    @cached_property
    def by(self) -> NDArray[np.int64]:
        """The distances of the keys [K]."""
        if not self.seen:
            return self.moved
        found = np.zeros_like(self.moved)
        for one in self.seen:
            order = one.order
            found[order] = self.moved[order]
        return found

    @cached_property
    def distances(self) -> NDArray[np.int64]:
        """The distances that occur, 0 first, which always belongs to them."""
        found = np.unique(self.by)
        return np.concatenate((np.zeros(1, dtype=np.int64), found[found != 0]))

    @cached_property
    def runs(self) -> NDArray[np.int64]:
        """Runs of keys of one distance [n, 2]: the end of each, and the place among ``distances``."""
        ends = np.append(np.flatnonzero(np.diff(self.by)) + 1, len(self.by))
        order = np.argsort(self.distances)
        places = order[np.searchsorted(self.distances, self.by[ends - 1], sorter=order)]
        return np.stack((ends, places), axis=1)

    def rotation(self, cos: Tensor, sin: Tensor) -> Rotation | None:
        """What rotates each key to where its token is, for attention that rotates no query; None where none has moved.

        ``cos`` and ``sin`` [P, D] are those of all positions.
        """
        rows = np.flatnonzero(self.by)
        if not len(rows):
            return None
        by = torch.from_numpy(self.by[rows]).to(cos.device)
        far = by.abs()
        return Rotation(torch.from_numpy(rows).to(cos.device), cos[far], sin[far] * by.sign()[:, None])
