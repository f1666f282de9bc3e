"""Statistics that both benchmarks use."""

from collections.abc import Sequence
from math import ceil


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the smallest value that at least ``share`` per cent of the values do not exceed, or 0 without values."""
    ordered = sorted(values)
    return round(ordered[max(0, ceil(len(ordered) * share / 100) - 1)], 1) if ordered else 0.0
