"""The longest match (infini-gram, arXiv 2401.17377) of the text before a slot, and the tokens that it proposes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lacuna_model.prior.index import MAX_MATCH, Places, Segment

# The most tokens of a match that are proposed.
MAX_OFFERED = 16


@dataclass(frozen=True, slots=True)
class Match:
    """The places where the tokens before a slot occur in the project, as offsets of the token that follows them.

    ``length`` tokens agree; no longer match exists.
    """

    length: int
    found: tuple[tuple[Segment, Places], ...]

    @property
    def count(self) -> int:
        """The number of places (of very many, a sample)."""
        return sum(len(places) for _, places in self.found)

    def tokens(self) -> NDArray[np.int64]:
        """The token in the slot at every place."""
        parts = [segment.array.tokens[places].astype(np.int64) for segment, places in self.found]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def follow(self, token: int) -> "Match | None":
        """The match of the next slot, given the token in this one; None where no place has it.

        A followed match is again the longest: a longer one would have been longer here too.
        """
        found = []
        for segment, places in self.found:
            kept = places[segment.array.tokens[places] == token] + 1
            kept = kept[segment.array.tokens[kept] != segment.array.separator]
            if len(kept):
                found.append((segment, kept))
        return Match(min(self.length + 1, MAX_MATCH), tuple(found)) if found else None


def longest_match(segments: Sequence[Segment], context: Sequence[int]) -> Match | None:
    """The longest end of ``context`` that occurs in the project followed by a token."""
    best = 0
    found: list[tuple[Segment, Places]] = []
    for segment in segments:
        length, places = _longest_in(segment, context[-MAX_MATCH:], best)
        if length > best:
            best, found = length, []
        if length:
            found.append((segment, places))
    return Match(best, tuple(found)) if best else None


def _longest_in(segment: Segment, context: Sequence[int], at_least: int) -> tuple[int, Places]:
    """Length and places of the longest match in one segment; 0 and none where it is shorter than ``at_least``."""
    array = segment.array
    run = np.asarray(context, dtype=array.kind).tobytes()
    width = array.kind.itemsize

    def places(length: int) -> Places:
        slots = array.places(array.find(run[-length * width :])) + length
        return segment.counted(slots[array.tokens[slots] != array.separator])

    def occurs(length: int) -> bool:
        if segment.counts is None:
            return array.goes_on(run[-length * width :])
        return len(places(length)) > 0

    length = max(at_least, 1)
    if len(context) < length or not occurs(length):
        return 0, np.zeros(0, dtype=np.int64)
    # If a run does not occur, no longer one does. Few are much longer than what other segments have.
    step = 1
    while step:
        if length + step <= len(context) and occurs(length + step):
            length, step = length + step, 2 * step
        else:
            step //= 2
    return length, places(length)


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
