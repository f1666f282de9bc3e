"""Tokens that the project proposes for the slots of a gap, one after another, given the tokens before them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lacuna_model.prior.index import Segment
from lacuna_model.prior.matching import Match, longest_match

# The most tokens of a match that are proposed.
MAX_OFFERED = 16


@dataclass(frozen=True, slots=True)
class Proposal:
    """Tokens of a slot with their shares [N], most frequent first; ``length`` and ``count`` of their match."""

    ids: NDArray[np.int64]
    shares: NDArray[np.float64]
    length: int
    count: int

    @property
    def purity(self) -> float:
        """The share of the most frequent token."""
        return float(self.shares[0])


def propose(match: Match) -> Proposal:
    """The tokens at a match's places."""
    tokens = match.tokens()
    ids, counts = np.unique(tokens, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MAX_OFFERED]
    return Proposal(ids[order], counts[order] / match.count, match.length, match.count)


class Walk:
    """Follows a fill through the project from its first open slot on, token by token.

    A match is followed as long as it contains the tokens taken; otherwise the longest match is searched again.
    """

    def __init__(self, segments: Sequence[Segment], left: Sequence[int]) -> None:
        self._segments = segments
        self._left = list(left)
        self._match = longest_match(segments, self._left)

    def proposal(self) -> Proposal | None:
        """The tokens that may fill the slot; None where the project has no match."""
        return propose(self._match) if self._match else None

    def take(self, token: int) -> None:
        """Put a token into the slot and go to the next."""
        self._left.append(token)
        followed = self._match and self._match.follow(token)
        self._match = followed or longest_match(self._segments, self._left)
