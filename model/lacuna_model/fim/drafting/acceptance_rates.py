"""The acceptance rate of each source of drafts, by which what it says of its next token is corrected."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Literal

# The share of drafts that is believed to hold before any was verified, that of masks first, ...
BELIEVED_MASKED, BELIEVED = 5 / 6, 2 / 3
# ... counts as much as so many that were verified: of their probability, and of their number.
WEIGHT, WEIGHT_OF = 8.0, 12.0
# The rates of a model forget: of older drafts than so many of a kind, half count.
REMEMBERED = 256

# ``masked`` are the slots after the last token that a smaller model has read, or the model itself; ``old`` is the text
# that stood in the gap, ``ahead`` what was drafted while the gap waited, ``refused`` what the model said behind a draft
# that it refused.
Source = Literal["project", "masked", "refused", "old", "ahead"]
Kind = tuple[Source, int]


@dataclass(frozen=True, slots=True)
class DraftedToken:
    """A drafted token, its probability given those before it, and where it comes from.

    ``slot`` counts the tokens before it that its source had not read, either.
    """

    token: int
    probability: float
    source: Source
    slot: int = 0


@dataclass(slots=True)
class AcceptanceRates:
    """How well the drafts of each source have been holding, by what the source had not read: of a document, or a model.

    Those of a document begin as those of its ``model`` are, and go on from there. ``verified`` counts verified tokens,
    ``held`` those of them that were right, and ``expected`` sums their probabilities. ``asked`` counts verified tokens
    by their slot of the draft, ``right`` those of them that were right.
    """

    model: "AcceptanceRates | None" = None
    expected: dict[Kind, float] = field(default_factory=lambda: defaultdict(float))
    held: dict[Kind, float] = field(default_factory=lambda: defaultdict(float))
    verified: dict[Kind, float] = field(default_factory=lambda: defaultdict(float))
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
        if self.model is not None:
            self.model.saw(guess, slot, held)
        elif self.verified[key] > REMEMBERED:
            for sums in (self.expected, self.held, self.verified):
                sums[key] /= 2

    def corrected(self, probability: float, source: Source, slot: int = 0) -> float:
        """A source's probability, given how its drafts have been holding."""
        return min(probability * self._ratio((source, slot)), 0.99)

    def usual(self, source: Source, slot: int = 0) -> float:
        """The share of a source's drafts that have been right; before any was verified 2 of 3, 5 of 6 of masks."""
        key = source, slot
        believed = BELIEVED_MASKED if source == "masked" else BELIEVED
        before = believed if self.model is None else self.model.usual(source, slot)
        return (self.held[key] + WEIGHT_OF * before) / (self.verified[key] + WEIGHT_OF)

    def _ratio(self, key: Kind) -> float:
        before = 1.0 if self.model is None else self.model._ratio(key)
        return (self.held[key] + WEIGHT * before) / (self.expected[key] + WEIGHT)
