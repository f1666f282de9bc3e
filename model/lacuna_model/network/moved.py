"""Keys whose tokens have been moved to other positions since they were read.

A key is rotated once, for the position at which its token was read, and rounded once. Where the token has moved since,
the query is rotated as if it had moved as far the other way: scores depend on the distance alone.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import rotary


@dataclass(frozen=True)
class MovedKeys:
    """By how many positions each of the keys [K] of a store was moved, some of them by other than 0."""

    by: NDArray[np.int64]

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

    def rotated(self, keys: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """A copy of ``keys`` [.., K, D], each rotated to where its token is; ``cos`` and ``sin`` [P, D] by position.

        For attention that rotates no query. The copy is not stored, so that a key is rounded from what was read.
        """
        rows = np.flatnonzero(self.by)
        by = torch.from_numpy(self.by[rows]).to(keys.device)
        chosen, far = torch.from_numpy(rows).to(keys.device), by.abs()
        turned = rotary(keys[..., chosen, :].float(), cos[far], sin[far] * by.sign()[:, None])
        return keys.index_copy(-2, chosen, turned.to(keys.dtype))


def moved_keys(by: NDArray[np.int64]) -> MovedKeys | None:
    """The keys [K] that were moved ``by`` so many positions; None where none was."""
    return MovedKeys(by) if by.any() else None
