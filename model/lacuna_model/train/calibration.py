"""Whether a model's confidence means what it says: how often it is right, by how sure it was."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

_BINS = 10


class Bin(msgspec.Struct, frozen=True):
    """Predictions of similar confidence, in the bin that begins at ``low``: how many, how sure and how often right."""

    low: float
    slots: int
    confidence: float
    accuracy: float


class Calibration:
    """Counts predictions by confidence, in ten bins of equal width."""

    def __init__(self) -> None:
        self._sums = np.zeros((3, _BINS))

    def add(self, confidence: NDArray[np.floating], correct: NDArray[np.bool_]) -> None:
        """Count predictions [N]: the probability of the best token, and whether it was the true one."""
        index = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
        for sums, weights in zip(self._sums, (None, confidence, correct), strict=True):
            sums += np.bincount(index, weights, _BINS)

    def bins(self) -> tuple[Bin, ...]:
        """The bins that hold anything, the least sure first."""
        return tuple(
            Bin(low / _BINS, int(slots), float(confidence / slots), float(correct / slots))
            for low, (slots, confidence, correct) in enumerate(self._sums.T)
            if slots
        )


def expected_error(bins: Sequence[Bin]) -> float:
    """Expected calibration error (Guo et al. 2017): the mean gap between confidence and accuracy, by slots."""
    slots = sum(one.slots for one in bins)
    return sum(one.slots * abs(one.confidence - one.accuracy) for one in bins) / max(slots, 1)


def pooled(reports: Sequence[Sequence[Bin]]) -> tuple[Bin, ...]:
    """The bins of several sets of predictions taken together."""
    found: dict[float, list[Bin]] = {}
    for one in (one for bins in reports for one in bins):
        found.setdefault(one.low, []).append(one)
    return tuple(_merged(found[low]) for low in sorted(found))


def _merged(bins: Sequence[Bin]) -> Bin:
    slots = sum(one.slots for one in bins)
    confidence, accuracy = (
        sum(one.slots * getattr(one, name) for one in bins) / slots for name in ("confidence", "accuracy")
    )
    return Bin(bins[0].low, slots, confidence, accuracy)
