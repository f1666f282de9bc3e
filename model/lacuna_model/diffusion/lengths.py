"""Finds the length of a fill without training: CAL, Calibrated Adaptive Length (arXiv 2602.00476)."""

import math
from collections.abc import Generator, Sequence

# So many lengths in a row that are no better end the search in their direction.
PATIENCE = 4


def search(start: int, least: int, most: int, bias: Sequence[float]) -> Generator[int, float, int]:
    """Yields the lengths to try, takes the mean confidence of the first step at each, and returns the best length.

    From ``start`` it climbs to longer lengths, then to shorter ones, each until ``PATIENCE`` lengths were no better.
    A confidence is divided by what it is at such a length whatever the text: a e^(-bL) + c e^(-dL) + e, with ``bias``
    (a, b, c, d, e).
    """
    best = min(max(start, least), most)
    first = best
    highest = (yield first) / _bias(first, bias)
    for direction in (1, -1):
        length, worse = first + direction, 0
        while least <= length <= most and worse < PATIENCE:
            confidence = (yield length) / _bias(length, bias)
            worse = 0 if confidence > highest else worse + 1
            if not worse:
                best, highest = length, confidence
            length += direction
    return best


def _bias(length: int, bias: Sequence[float]) -> float:
    a, b, c, d, e = bias
    return a * math.exp(-b * length) + c * math.exp(-d * length) + e
