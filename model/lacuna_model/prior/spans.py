"""Whole fills that the project has: what stands there between texts like those beside a gap.

How often such a text is the fill depends on how far the texts beside it agree, and on what the base says of it there.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lacuna_model.ending import FLOOR
from lacuna_model.prior.index import Segment
from lacuna_model.prior.matching import Allowed
from lacuna_model.prior.suffix_array import MAX_MATCH, Places
from lacuna_model.rows import said_of

# Longest span (tokens), and the most tokens behind it that are compared with the text behind the gap.
MAX_SPAN, MAX_RIGHT = 64, 16
# Fewer tokens than this behind a span are no sign that it ends there: a line break alone stands everywhere.
MIN_RIGHT = 2
# Matches of these lengths on the left are looked up, so many places of each.
LEFT_LENGTHS = (32, 16, 8, 4, 2, 1)
PLACES_PER_LENGTH = 192
# Spans that are weighed against each other.
MAX_SPANS = 16


@dataclass(frozen=True, slots=True)
class Span:
    """A fill that the project has, as tokens: how many agree on its left and right, and at how many places it stands.

    ``rivals`` counts the different spans found for the gap, itself included.
    """

    tokens: tuple[int, ...]
    left: int
    right: int
    count: int
    rivals: int = 1

    def features(self) -> NDArray[np.float64]:
        """What its odds are a function of [7]: a constant, and logarithms of all there is to count."""
        left, right = math.log2(1 + self.left), math.log2(1 + self.right)
        sizes = [math.log2(1 + size) for size in (self.count, len(self.tokens), self.rivals)]
        return np.array([1.0, left, right, left * right, *sizes])


def find_spans(
    segments: Sequence[Segment], left: Sequence[int], after: Sequence[int], allowed: Allowed = None
) -> list[Span]:
    """The spans that stand between a match of the end of ``left`` and one of the beginning of ``after``, best first.

    ``allowed`` says what a span may begin with; then none is empty.
    """
    found: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    if len(after) >= MIN_RIGHT:
        for segment in segments:
            for tokens, agreed in _between(segment, left, after):
                if allowed is None or (tokens and allowed[tokens[0]]):
                    found[tokens].append(agreed)
    spans = []
    for tokens, places in found.items():
        best = max(places, key=lambda pair: (min(pair[0], 8) + min(pair[1], 8), pair[0] + pair[1]))
        spans.append(Span(tokens, best[0], best[1], count=len(places), rivals=len(found)))
    spans.sort(key=lambda span: -(min(span.left, 8) + min(span.right, 8) + math.log2(span.count)))
    return spans[:MAX_SPANS]


@dataclass(frozen=True, slots=True)
class Spoken:
    """What the base says of a span's tokens: their mean log-probability, and how far the worst lies behind the best.

    The mean is 0 for an empty span, as is ``lag``: the log-probability of a token less that of the likeliest one there.
    """

    mean: float
    lag: float

    @classmethod
    def of(cls, logits: Tensor, tokens: Sequence[int]) -> "Spoken":
        """What logits [N, V] say of N tokens."""
        if not tokens:
            return cls(0.0, 0.0)
        rows = logits.log_softmax(-1)
        said = said_of(rows, tokens)
        return cls(float(said.mean()), float((said - rows.amax(-1)).min()))

    def features(self, log_odds: float) -> NDArray[np.float64]:
        """What a span's odds are a function of [4], given its ``log_odds`` without the base."""
        return np.array([1.0, log_odds, max(self.mean, FLOOR), max(self.lag, FLOOR)])


def log_odds(spans: Sequence[Span], coefficients: Sequence[float]) -> list[float]:
    """The log-odds of every span, by what stands beside it, against none of them being the fill."""
    return [float(np.dot(coefficients, span.features())) for span in spans]


def probabilities(odds: Sequence[float]) -> NDArray[np.float64]:
    """The probability of every span to be the whole fill [N], from log-odds: against each other and none of them."""
    weights = np.exp(odds)
    return np.asarray(weights / (1 + weights.sum()))


def _between(
    segment: Segment, left: Sequence[int], after: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, int]]]:
    """Spans of one segment with their agreement on either side; one for every place where ``after`` begins."""
    array = segment.array
    places = _places(segment, left)
    if not len(places):
        return
    run = after[:MAX_RIGHT]
    ahead = np.minimum(places[:, None] + np.arange(MAX_SPAN + len(run)), len(array.tokens) - 1)
    seen = array.tokens[ahead].astype(np.uint32)  # in the machine's byte order
    begins = seen[:, :MAX_SPAN] == run[0]
    for i in range(1, MIN_RIGHT):
        begins &= seen[:, i : MAX_SPAN + i] == run[i]
    lengths: dict[int, int] = {}
    for row, size in np.argwhere(begins).tolist():
        line = seen[row].tolist()
        if array.separator not in line[: size + MIN_RIGHT]:
            if row not in lengths:
                lengths[row] = _left_agreement(segment, int(places[row]), left)
            yield tuple(line[:size]), (lengths[row], _common(line[size:], run))


def _places(segment: Segment, left: Sequence[int]) -> Places:
    """Where a fill may begin: behind every match of an end of ``left``, the longest ones whole."""
    array, found = segment.array, [np.zeros(0, dtype=np.int64)]
    data = np.asarray(left[-MAX_MATCH:], dtype=array.kind).tobytes()
    for length in LEFT_LENGTHS:
        if length <= len(left):
            first, last = array.find(data[-length * array.kind.itemsize :])
            step = max(1, -(-(last - first) // PLACES_PER_LENGTH))
            places = array.order[first:last:step].astype(np.int64) + length
            places = places[array.tokens[places] != array.separator]
            found.append(segment.counted(places))
            if last - first > PLACES_PER_LENGTH:
                break  # shorter ones have these and more
    return np.unique(np.concatenate(found))


def _left_agreement(segment: Segment, place: int, left: Sequence[int]) -> int:
    """How many tokens in front of a place are those at the end of ``left``, at most MAX_MATCH."""
    behind = segment.array.tokens[max(place - MAX_MATCH, 0) : place]
    return _common(behind[::-1].tolist(), left[::-1])


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two runs begin with alike."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (one, other) in pairs if one != other), min(len(first), len(second)))
