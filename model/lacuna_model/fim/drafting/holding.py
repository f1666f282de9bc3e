"""How well drafts have been holding: what a source says of its next token is corrected by that."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, get_args

# How many drafts of a source are believed to have held as expected before any was verified.
BELIEVED = 8.0

Source = Literal["project", "drafter", "old", "ahead"]
SOURCES: tuple[Source, ...] = get_args(Source)


@dataclass(frozen=True, slots=True)
class Guess:
    """A drafted token, its probability given those before it, and where it comes from."""

    token: int
    probability: float
    source: Source


@dataclass(slots=True)
class Holding:
    """How well the drafts of each source have been holding in one document.

    ``asked`` counts verified tokens by their slot of the draft, ``right`` those of them that were right. ``verified``
    counts them by their source.
    """

    expected: dict[Source, float] = field(default_factory=lambda: dict.fromkeys(SOURCES, BELIEVED))
    held: dict[Source, float] = field(default_factory=lambda: dict.fromkeys(SOURCES, BELIEVED))
    verified: Counter[Source] = field(default_factory=Counter)
    asked: Counter[int] = field(default_factory=Counter)
    right: Counter[int] = field(default_factory=Counter)

    def saw(self, guess: Guess, slot: int, held: bool) -> None:
        """Learn from the token of a draft's ``slot``, which was verified."""
        self.expected[guess.source] += guess.probability
        self.held[guess.source] += held
        self.verified[guess.source] += 1
        self.asked[slot] += 1
        self.right[slot] += held

    def corrected(self, probability: float, source: Source) -> float:
        """A source's probability, given how its drafts have been holding."""
        return min(probability * self.held[source] / self.expected[source], 0.99)

    def usual(self, source: Source) -> float:
        """The share of a source's drafts that have been right; 2 of 3 before any was verified."""
        return self.held[source] / (self.verified[source] + BELIEVED * 3 / 2)
