"""What the project says of the slots of a gap, one after another, given what stands beside them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lacuna_model.prior.index import Segment
from lacuna_model.prior.matching import Allowed, Match, match_left, match_right

# Tokens of the text behind a gap that are compared with what follows a match: the more agree, the surer the fill ends.
END_TOKENS = 6
# Of the tokens that a match offers, so many are mixed in.
MAX_OFFERED = 16


@dataclass(frozen=True, slots=True)
class Proposal:
    """Tokens of a slot with their shares [N], most frequent first, and the match that they come from."""

    ids: NDArray[np.int64]
    shares: NDArray[np.float64]
    length: int
    count: int

    @property
    def purity(self) -> float:
        """The share of the most frequent token."""
        return float(self.shares[0])

    def without(self, token: int) -> "Proposal | None":
        """What is proposed beside a token; None where nothing is."""
        kept = self.ids != token
        return replace(self, ids=self.ids[kept], shares=self.shares[kept]) if kept.any() else None


def features(length: int, count: int, purity: float) -> NDArray[np.float64]:
    """What a match's weight is a function of [5]: a constant, log length, log count, purity, purity x log length."""
    log_length = math.log2(1 + length)
    return np.array([1.0, log_length, math.log2(1 + count), purity, purity * log_length])


@dataclass(frozen=True, slots=True)
class EndEvidence:
    """When a match says that the fill ends: its continuation is what stands behind the gap, ``after``.

    ``rates`` [END_TOKENS + 1] is how often a fill ends where so many tokens agree.
    """

    end_id: int
    after: Sequence[int]
    rates: Sequence[float]

    def shares(self, match: Match) -> NDArray[np.float64]:
        """The share of an end at every place of a match."""
        return np.asarray(self.rates)[agreement(match, self.after)]


def agreement(match: Match, after: Sequence[int]) -> NDArray[np.int64]:
    """How many tokens from every place of a match on are those behind the gap, at most END_TOKENS."""
    agreed = np.ones(match.count, dtype=bool)
    total = np.zeros(match.count, dtype=np.int64)
    for ahead, token in enumerate(after[:END_TOKENS]):
        agreed &= match.tokens(ahead) == token
        if not agreed.any():
            break
        total += agreed
    return total


def propose(match: Match, end: EndEvidence | None = None) -> Proposal:
    """The tokens that stand at a match's places; where what follows is the text behind the gap, the end as well."""
    tokens = match.tokens()
    if end is None:
        weights = np.ones(len(tokens))
    else:
        ends = end.shares(match)
        tokens = np.append(tokens, end.end_id)
        weights = np.append(1 - ends, ends.sum())
    ids, inverse = np.unique(tokens, return_inverse=True)
    shares = np.bincount(inverse, weights) / match.count
    order = np.argsort(-shares, kind="stable")[:MAX_OFFERED]
    order = order[shares[order] > 0]
    return Proposal(ids[order], shares[order], match.length, match.count)


class Walk:
    """Follows a fill through the project from its first open slot on, token by token.

    The continuation of a match is followed as long as the tokens taken are its own; otherwise the longest match is
    looked for anew.
    """

    def __init__(self, segments: Sequence[Segment], left: Sequence[int], end: EndEvidence, allowed: Allowed) -> None:
        self._segments = segments
        self._left = list(left)
        self._end = end
        self.match = match_left(segments, self._left, allowed)

    def proposal(self) -> Proposal | None:
        """What may stand in the slot; None where the project has nothing like it."""
        return propose(self.match, self._end) if self.match else None

    def take(self, token: int) -> None:
        """The slot has its token: on to the next."""
        self._left.append(token)
        followed = self.match and self.match.follow(token)
        self.match = followed or match_left(self._segments, self._left)


def propose_right(segments: Sequence[Segment], right: Sequence[int]) -> Proposal | None:
    """What may stand in a slot, given the tokens behind it; None where the project has nothing like it."""
    match = match_right(segments, right)
    return propose(match) if match else None
