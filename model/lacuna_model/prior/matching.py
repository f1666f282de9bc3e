"""The longest match (infini-gram, arXiv 2401.17377) of the text before a slot, over several segments at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lacuna_model.prior.index import Segment
from lacuna_model.prior.suffix_array import MAX_MATCH, Places


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
