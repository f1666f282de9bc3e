"""Figures that both benchmarks share."""

from collections.abc import Sequence
from math import ceil


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that at least ``share`` per cent of them do not exceed; 0 without values."""
    ordered = sorted(values)
    return round(ordered[max(0, ceil(len(ordered) * share / 100) - 1)], 1) if ordered else 0.0
