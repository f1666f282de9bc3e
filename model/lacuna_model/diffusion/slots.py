"""The slots of a gap, what a model says of them, and how many there are."""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import unmask
from lacuna_model.core.constraint import Run
from lacuna_model.decode.fill import Drafted
from lacuna_model.decode.sampling import NUM_CANDIDATES, RULED_OUT


@dataclass(frozen=True, slots=True)
class Marginals:
    """What a pass says of B slots: candidates [B, K] best first, log-probabilities [B, K], and entropy [B] (nats)."""

    ids: NDArray[np.int64]
    logp: NDArray[np.float32]
    entropy: NDArray[np.float32]

    def row(self, slot: int) -> "Marginals":
        """Those of one slot."""
        one = slice(slot, slot + 1)
        return Marginals(self.ids[one], self.logp[one], self.entropy[one])


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn: from the most probable ones that have the probability ``top_p`` together.

    ``temperature`` 0 takes the most probable token.
    """

    temperature: float = 0.0
    top_p: float = 1.0


GREEDY = Sampling()


def summary(logits: Tensor, ruled: Tensor, sampling: Sampling = GREEDY) -> Marginals:
    """The marginals of the rows ``logits`` [R, V], which are overwritten, without the tokens ``ruled`` out [R, V].

    Probabilities and entropies are those of all tokens, so that what is ruled out still counts as doubt.
    """
    if sampling.temperature > 0:
        logits /= sampling.temperature
    logp = logits.float().log_softmax(-1)
    probabilities = logp.exp()
    entropy = -(probabilities * logp).sum(-1)
    left = (1 - (probabilities * ruled).sum(-1)).clamp_min(1e-6).log()
    ids, best = unmask(logp.masked_fill_(ruled, RULED_OUT), NUM_CANDIDATES)
    best += left[:, None]
    found = Marginals(ids.numpy(force=True), best.numpy(force=True), entropy.numpy(force=True))
    return _nucleus(found, sampling.top_p) if sampling.temperature > 0 and sampling.top_p < 1 else found


@lru_cache(maxsize=1024)
def sure(token: int) -> Marginals:
    """The marginals of a known slot: its token with probability 1. They are shared, and must not be changed."""
    ids = np.zeros((1, NUM_CANDIDATES), dtype=np.int64)
    logp = np.full((1, NUM_CANDIDATES), RULED_OUT, dtype=np.float32)
    ids[0, 0], logp[0, 0] = token, 0.0
    return Marginals(ids, logp, np.zeros(1, dtype=np.float32))


def _nucleus(seen: Marginals, top_p: float) -> Marginals:
    """The candidates up to the first with which they have the probability ``top_p``, and the entropy of these."""
    probabilities = np.exp(seen.logp)
    kept = np.cumsum(probabilities, axis=1) - probabilities <= top_p
    total = (probabilities * kept).sum(1, keepdims=True)
    share = np.where(kept, probabilities / total, 1.0)
    logp = np.where(kept, np.log(share), RULED_OUT).astype(np.float32)
    return Marginals(seen.ids, logp, -(share * np.log(share)).sum(1).astype(np.float32))


class Slots:
    """The slots of a gap: ``tokens``, None where one is a mask.

    ``offered``: the constraint has been asked about them. ``marks`` are the tokens that are no text, and so no
    alternative to a token: they end a text, or change its length.
    """

    def __init__(self, marks: Sequence[int] = ()) -> None:
        self._marks = list(marks)
        self.tokens: list[int | None] = []
        self.offered = False
        self._rows: list[Marginals | None] = []

    def become(self, tokens: Sequence[int | None]) -> None:
        """Take these tokens as given."""
        self.tokens = list(tokens)
        self._rows = [None if token is None else sure(token) for token in tokens]

    def put(self, slot: int, row: Marginals) -> None:
        """Give a slot the best token of its ``row``."""
        self.tokens[slot], self._rows[slot] = int(row.ids[0, 0]), self._without_marks(row)

    def _without_marks(self, row: Marginals) -> Marginals:
        """The row of a slot in which no mark is likelier than what is text."""
        marked = np.isin(row.ids[0], self._marks)
        marked[0] = False
        if not marked.any():
            return row
        ranks = np.argsort(marked, kind="stable")
        logp = np.where(marked, np.float32(RULED_OUT), row.logp[0])[ranks]
        return Marginals(row.ids[:, ranks], logp[None], row.entropy)

    def add(self, count: int) -> None:
        """Append masks."""
        self.tokens += [None] * count
        self._rows += [None] * count

    def keep(self, slots: Sequence[int]) -> None:
        """Drop all other slots."""
        self.tokens = [self.tokens[slot] for slot in slots]
        self._rows = [self._rows[slot] for slot in slots]

    def run(self, first: int, room: int, end: int | None) -> Run:
        """The tokens from slot ``first`` on, of ``room`` slots, none a mask; ``end`` follows, if there is one."""
        rows = [row for row in self._rows[first:room] if row is not None]
        assert len(rows) == len(self._rows[first:room])
        if end is not None and len(self._rows) < room:
            rows.append(sure(end))
        if not rows:
            return Run(np.zeros((0, NUM_CANDIDATES), np.int64), np.zeros((0, NUM_CANDIDATES), np.float32))
        return Run(np.concatenate([row.ids for row in rows]), np.concatenate([row.logp for row in rows]))

    def drafted(self, first: int, seen: Callable[[int], Marginals | None]) -> list[Drafted]:
        """The slots from ``first`` on: a mask as a pass has ``seen`` it, up to the first that none has."""
        found = list[Drafted]()
        for slot in range(first, len(self._rows)):
            row = self._rows[slot] or seen(slot)
            if row is None:
                break
            found.append(Drafted(int(row.ids[0, 0]), float(np.exp(row.logp[0, 0]))))
        return found


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
