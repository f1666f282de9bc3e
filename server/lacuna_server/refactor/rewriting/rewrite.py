"""Defines the rewrite of a place (text and holes), and selects the places of a file that can be rewritten together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TypeAlias

from lacuna_model.core.params import Region
from lacuna_server.refactor.places.source import Source

# A hole is a region whose offsets are not known yet.
Part: TypeAlias = str | Region
TOO_DEEP = "the code has too many nodes within or beside each other to be searched; not changed"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Replaces the bytes ``start``..``end`` of a file by ``parts``: text and holes.

    A ``support`` rewrite, such as an import, is useful only together with another one of its file.
    """

    start: int
    end: int
    parts: tuple[Part, ...]
    label: str
    support: bool = False
    instruction: str = ""

    @property
    def holes(self) -> tuple[Region, ...]:
        """The holes in order."""
        return tuple(part for part in self.parts if isinstance(part, Region))

    def moved(self, by: int) -> "Rewrite":
        """Returns the rewrite in a text that has so many more bytes before it."""
        return replace(self, start=self.start + by, end=self.end + by)

    def filled(self, fills: Sequence[str]) -> str:
        """Returns the new text, with one fill for every hole."""
        return "".join(self._texts(fills))

    def spans(self, fills: Sequence[str]) -> list[tuple[int, int]]:
        """Returns the byte range of every fill in the new text."""
        ends = list(accumulate((len(text.encode()) for text in self._texts(fills)), initial=0))
        return [span for part, span in zip(self.parts, pairwise(ends), strict=True) if isinstance(part, Region)]

    def _texts(self, fills: Sequence[str]) -> list[str]:
        remaining = iter(fills)
        return [part if isinstance(part, str) else next(remaining) for part in self.parts]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A place (byte offset ``at``) that seems to match but is not changed, and the reason."""

    at: int
    reason: str

    def moved(self, by: int) -> "LeftOut":
        """Returns the place in a text that has so many more bytes before it."""
        return replace(self, at=self.at + by)


def disjoint(source: Source, rewrites: Iterable[Rewrite]) -> tuple[list[Rewrite], list[str]]:
    """Returns the rewrites in order without those that overlap an earlier or outer one, and a line about each of these.

    An insertion may directly precede a place. Of two insertions at one offset the second is left out, because their
    order would be arbitrary.
    """
    chosen: list[Rewrite] = []
    refused: list[str] = []
    for rewrite in sorted(rewrites, key=lambda rewrite: (rewrite.start, rewrite.start < rewrite.end, -rewrite.end)):
        last = chosen[-1] if chosen else None
        if last is None or (rewrite.start >= last.end and (rewrite.start, rewrite.end) != (last.start, last.end)):
            chosen.append(rewrite)
        elif (rewrite.start, rewrite.end, rewrite.parts) != (last.start, last.end, last.parts):
            line, column = source.position(rewrite.start)
            outer = source.position(last.start)
            refused.append(f"{source.path}:{line}:{column}: overlaps the place at {outer[0]}:{outer[1]}")
    return chosen, refused


def first_line(text: str, width: int = 60) -> str:
    """Returns the first line of a text, shortened to ``width`` characters, as a label for a place."""
    line = text.strip().split("\n", 1)[0].rstrip()
    return line if len(line) <= width and line == text.strip() else f"{line[: width - 1]}…"
