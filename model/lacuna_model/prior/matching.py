"""The longest match (infini-gram, arXiv 2401.17377) of the text beside a slot, over several segments at once."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lacuna_model.prior.index import Segment
from lacuna_model.prior.suffix_array import MAX_MATCH, Places

# Which tokens may stand in a slot, as flags by id; None: all.
Allowed = NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class Match:
    """Where the tokens beside a slot stand in the project: for every place, the offset of the token in the slot.

    ``length`` tokens agree, and no more than that anywhere. ``side`` is the way on from the slot: 1 where its left
    was matched, -1 where its right was.
    """

    length: int
    found: tuple[tuple[Segment, Places], ...]
    side: int

    @property
    def count(self) -> int:
        """How many places there are (of very many, a sample)."""
        return sum(len(places) for _, places in self.found)

    def tokens(self, ahead: int = 0) -> NDArray[np.int64]:
        """What stands in the slot at every place, or so many tokens behind it; -1 beyond a document's end."""
        parts = [_tokens(segment, places + ahead * self.side) for segment, places in self.found]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def follow(self, token: int) -> "Match | None":
        """The match of the next slot on, given the token in this one; None where it stands at no place.

        A match that is followed is again the longest: a longer one would have been longer here too.
        """
        found = []
        for segment, places in self.found:
            kept = places[segment.array.tokens[places] == token] + self.side
            kept = kept[segment.array.tokens[kept] != segment.array.separator]
            if len(kept):
                found.append((segment, kept))
        return Match(min(self.length + 1, MAX_MATCH), tuple(found), self.side) if found else None


def match_left(segments: Sequence[Segment], context: Sequence[int], allowed: Allowed = None) -> Match | None:
    """The longest end of ``context`` that stands in the project in front of a token that may be in the slot."""
    return _longest(segments, context[-MAX_MATCH:], 1, allowed)


def match_right(segments: Sequence[Segment], context: Sequence[int], allowed: Allowed = None) -> Match | None:
    """The longest beginning of ``context`` that stands in the project behind a token that may be in the slot."""
    return _longest(segments, context[:MAX_MATCH], -1, allowed)


def _longest(segments: Sequence[Segment], context: Sequence[int], side: int, allowed: Allowed) -> Match | None:
    best = 0
    found: list[tuple[Segment, Places]] = []
    for segment in segments:
        length, places = _longest_in(segment, context, side, allowed)
        if length > best:
            best, found = length, []
        if length and length == best:
            found.append((segment, places))
    return Match(best, tuple(found), side) if best else None


def _longest_in(segment: Segment, context: Sequence[int], side: int, allowed: Allowed) -> tuple[int, Places]:
    """Length and places of the longest match in one segment."""
    array = segment.array
    run = np.asarray(context, dtype=array.kind).tobytes()
    width = array.kind.itemsize

    def places(length: int) -> Places:
        part = run[-length * width :] if side > 0 else run[: length * width]
        slots = array.places(array.find(part)) + (length if side > 0 else -1)
        tokens = array.tokens[slots]
        slots = slots[tokens != array.separator]
        if allowed is not None:
            slots = slots[allowed[array.tokens[slots]]]
        return segment.counted(slots)

    # A run that does not occur makes no longer one occur: the lengths that do come first.
    length = bisect_left(range(1, len(context) + 1), True, key=lambda size: not len(places(size)))
    return length, places(length) if length else np.zeros(0, dtype=np.int64)


def _tokens(segment: Segment, places: Places) -> NDArray[np.int64]:
    tokens = segment.array.tokens
    inside = (places >= 0) & (places < len(tokens))
    seen = tokens[np.where(inside, places, 0)].astype(np.int64)
    return np.where(inside & (seen != segment.array.separator), seen, -1)
