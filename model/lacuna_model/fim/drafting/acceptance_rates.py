"""The acceptance rate of each source of drafts, by which what it says of its next token is corrected."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

# How many drafts of a source are believed to have held as expected before any was verified, more of mask rows ...
BELIEVED, BELIEVED_MASKED = 8.0, 10.0
# ... of how many.
BELIEVED_OF = 12.0

# ``drafter`` is the model's drafter or the smaller model, ``masked`` a mask row of that or of the model itself, ``old``
# the text that stood in the gap, ``ahead`` what was drafted while the gap waited, ``refined`` what the model said
# behind a draft it refused.
Source = Literal["project", "drafter", "masked", "refined", "old", "ahead"]


@dataclass(frozen=True, slots=True)
class DraftedToken:
    """A drafted token, its probability given those before it, and where it comes from.

    ``slot`` counts the tokens before it that its source had not read, either.
    """

    token: int
    probability: float
    source: Source
    slot: int = 0


class _Believed(dict[tuple[Source, int], float]):
    def __missing__(self, key: tuple[Source, int]) -> float:
        return BELIEVED_MASKED if key[0] == "masked" else BELIEVED


@dataclass(slots=True)
class AcceptanceRates:
    """How well the drafts of each source have been holding in one document, by what the source had not read.

    ``asked`` counts verified tokens by their slot of the draft, ``right`` those of them that were right. ``verified``
    counts them by their source, and ``held`` those of them that were right, beside the believed ones.
    """

    expected: dict[tuple[Source, int], float] = field(default_factory=_Believed)
    held: dict[tuple[Source, int], float] = field(default_factory=_Believed)
    verified: Counter[tuple[Source, int]] = field(default_factory=Counter)
    asked: Counter[int] = field(default_factory=Counter)
    right: Counter[int] = field(default_factory=Counter)

    def saw(self, guess: DraftedToken, slot: int, held: bool) -> None:
        """Learn from the token of a draft's ``slot``, which was verified."""
        key = guess.source, guess.slot
        self.expected[key] += guess.probability
        self.held[key] += held
        self.verified[key] += 1
        self.asked[slot] += 1
        self.right[slot] += held

    def corrected(self, probability: float, source: Source, slot: int = 0) -> float:
        """A source's probability, given how its drafts have been holding."""
        key = source, slot
        return min(probability * self.held[key] / self.expected[key], 0.99)

    def usual(self, source: Source, slot: int = 0) -> float:
        """The share of a source's drafts that have been right; before any was verified 2 of 3, 5 of 6 of mask rows."""
        key = source, slot
        return self.held[key] / (self.verified[key] + BELIEVED_OF)
