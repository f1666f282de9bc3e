"""What forward passes of different widths cost on this machine, how often each source of drafts is right, what pays.

Costs and rates are learnt from the passes themselves: a draft pays where its rows cost less than the passes that it
saves. A pass has masks or none. A smaller model drafts for all fills of a round in one pass, whose masks are the slots
after the next one (:class:`Round`). A model with mask rows of its own reads masks behind what its passes read anyway
(:class:`Ahead`).
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul
from typing import Literal

import numpy as np
from numpy.typing import NDArray

# Passes of up to so many rows share one estimate; so do all beyond the last. Kernels read rows by fours or eights, so
# that one row more may cost as much as all before it.
WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32, 48, 64, 128, 192)
# The weight of the newest pass: an estimate follows a busy machine within some ten passes.
NEWEST = 0.15
# Beyond the widths seen, each further row is taken to cost this share of the narrowest pass.
SHARE_A_ROW = 1 / 16
# A pass is taken to cost at most so many times as much as the narrower ones that would have its rows: one that seems
# dearer waited for other programs, and would never be tried again.
STEEPEST = 3
# Until passes with masks were seen, masks are taken to add this share of the narrowest pass.
ADDED = 0.5
# The price of a mask is near 0 until passes with different numbers of masks were seen.
FEW_MASKS = 1.0
# A reading of fewer rows says little of what a row of a long one costs.
LEAST_READ = 16
# Where masks seem not to pay, they are drafted for so much of the time nevertheless, to see whether that is so.
LOOKING = 1 / 64
# The share of the drafts of masks that is believed to hold before any was verified.
BELIEVED = 5 / 6
# What is believed counts as much as so many drafts that were verified: of their probability, and of their number.
WEIGHT, WEIGHT_OF = 8.0, 12.0
# Of older drafts than so many of a kind, half count.
REMEMBERED = 256

# ``masked`` are the slots after the last token that a smaller model has read, or the model itself; ``old`` is the text
# that stood in the gap or was taken back.
Source = Literal["project", "masked", "old"]
Kind = tuple[Source, int]


class PassCosts:
    """Milliseconds of a pass by its number of rows, of what masks add, and of a reading.

    Mask rows have additions, which are further work in each layer: launches, as on a GPU, or arithmetic for each mask.
    So n of them add a + b * n, fitted to the last passes. ``spare_ms`` may be spent on masks that seem not to pay.
    """

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}
        # The same by width: a wider pass costs no less, nor many times as much as the narrower ones that have its rows.
        self._points: list[tuple[int, float]] = []
        self._sharing = 1
        self.spare_ms = 0.0
        self._row_ms = 0.0
        # Of passes with masks, on average: the masks, their square, what they added, and that times the masks.
        self._masked: NDArray[np.float64] | None = None

    def saw_pass(self, rows: int, ms: float, sharing: int = 1, *, masks: int = 0) -> None:
        """Learn from a pass, whose rows are those of ``sharing`` requests; the last ``masks`` of them are masks."""
        self._sharing = sharing
        width = WIDTHS[min(bisect_left(WIDTHS, rows), len(WIDTHS) - 1)]
        if masks and self._points and width <= self._points[-1][0]:
            without = self.ms(rows)
            added = max(min(ms, 2 * self.ms(rows, masks)) - without, 0.0)  # a longer one waited for other programs
            seen = np.array((masks, masks**2, added, masks * added))
            self._masked = seen if self._masked is None else self._masked + NEWEST * (seen - self._masked)
            if ms >= without:
                return  # else it costs no more without masks
        elif masks:  # it says what so many rows cost
            ms = max(ms - self.added_ms(masks), ms / (1 + ADDED)) if self._points else ms / (1 + ADDED)
        self._seen[width] = _followed(self._seen.get(width, ms), ms)
        for narrow, known in self._seen.items():
            if narrow < width and known > ms:  # it cannot cost more
                self._seen[narrow] = _followed(known, ms)
        self._points = []
        for one, cost in sorted(self._seen.items()):
            if self._points:
                narrow, least = self._points[-1]
                cost = min(max(cost, least), STEEPEST * least * -(-one // narrow))
            self._points.append((one, cost))

    def saw_reading(self, rows: int, ms: float) -> None:
        """Learn from a reading of context, which takes many rows at a time."""
        if rows >= LEAST_READ:
            self._row_ms = _followed(self._row_ms or ms / rows, ms / rows)

    def reading_ms(self, rows: int) -> float:
        """The expected milliseconds of reading so many tokens of context."""
        return rows * (self._row_ms or max(self.ms(1) * SHARE_A_ROW, (self.ms(8) - self.ms(1)) / 7))

    def added_ms(self, masks: int) -> float:
        """What so many masks are expected to add to a pass beside the cost of its rows."""
        if self._masked is None:
            return ADDED * self.ms(1)
        mean, squares, mean_ms, by_masks = self._masked
        each = (by_masks - mean * mean_ms) / (squares - mean**2 + FEW_MASKS)
        each = min(max(each, 0.0), mean_ms / mean)  # neither part is below 0
        return float(mean_ms + each * (masks - mean))

    def looks(self, ms: float, price_ms: float) -> bool:
        """Whether to draft masks although they seem not to pay, at a price, in a round that takes ``ms`` otherwise."""
        self.spare_ms += LOOKING * ms
        if self.spare_ms < price_ms:
            return False
        self.spare_ms = 0.0
        return True

    def ms(self, rows: int, masks: int = 0) -> float:
        """The expected milliseconds of a pass over ``rows`` rows, ``masks`` included; 0 before any pass was seen."""
        if not self._seen:
            return 0.0
        if masks:
            return self.ms(rows) + self.added_ms(masks)
        points = self._points
        place = bisect_left(points, (rows, 0.0))
        if not place:
            return points[0][1]
        if place < len(points):
            (left, low), (right, high) = points[place - 1 : place + 1]
            return min(low + (high - low) * (rows - left) / (right - left), high)  # rounding may go over it
        last, cost = points[-1]
        return cost + (rows - last) * points[0][1] * SHARE_A_ROW

    def share_ms(self, rows: int) -> float:
        """A request's part of a pass in which each of the requests that share it has so many rows."""
        return self.ms(rows * self._sharing) / self._sharing

    def worth(self, rows: int, probability: float) -> bool:
        """Whether a slot that is right with ``probability`` pays for its row, beside ``rows`` others.

        A right slot saves its request the pass that would have found its token.
        Where several requests share the passes, each of them waits for the row, and the pass is one for all of them.
        """
        if not self._seen:
            return True
        return probability * self.share_ms(1) >= self.ms(rows + 1) - self.ms(rows)


def _followed(known: float, ms: float) -> float:
    """An estimate after one more measurement; one that waited for other programs counts as twice the estimate.

    An estimate of more than twice the measurement is from such a pass, or from one that compiled a kernel.
    """
    known = min(known, 2 * ms)
    return known + NEWEST * (min(ms, 2 * known) - known)


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
    """How well the drafts of each source have been holding, by what the source had not read.

    ``seen`` has of verified tokens the sum of their probabilities, how many were right, and their number.
    """

    seen: dict[Kind, NDArray[np.float64]] = field(default_factory=lambda: defaultdict(lambda: np.zeros(3)))

    def saw(self, guess: DraftedToken, held: bool) -> None:
        """Learn from a token that was verified."""
        seen = self.seen[guess.source, guess.slot]
        seen += (guess.probability, held, 1)
        if seen[2] > REMEMBERED:
            seen /= 2

    def corrected(self, probability: float, source: Source, slot: int = 0) -> float:
        """A source's probability, given how its drafts have been holding."""
        expected, held, _ = self.seen[source, slot]
        return min(probability * float(held + WEIGHT) / float(expected + WEIGHT), 0.99)

    def of_masks(self, slot: int) -> float:
        """The share of the drafts of masks in a slot that have been right; before any was verified 5 of 6."""
        _, held, verified = self.seen["masked", slot]
        return float(held + WEIGHT_OF * BELIEVED) / float(verified + WEIGHT_OF)


@dataclass(frozen=True, slots=True)
class Round:
    """A round for several fills: the costs of the model that verifies, and of the one that drafts.

    ``holds`` has for each fill how likely its slots hold, each if all before it do. ``unread`` are the tokens that the
    pass that drafts has to read.
    """

    verifier: PassCosts
    drafter: PassCosts
    holds: Sequence[Sequence[float]]
    unread: int

    @property
    def alone_ms(self) -> float:
        """What a round takes without drafts."""
        return self.verifier.ms(len(self.holds))

    def drafting_ms(self, slots: int) -> float:
        """What a pass takes that drafts so many slots of each fill."""
        masks = (slots - 1) * len(self.holds)
        return self.drafter.ms(self.unread + masks, masks)

    def best(self, most: int) -> tuple[int, float]:
        """How many slots to draft for each fill, 1 to ``most``, and the milliseconds that this saves for a token.

        The first slot takes no mask. Nothing is saved where drafts seem not to pay. Before any pass was seen, they do.
        """
        if not self.verifier.ms(1):
            return most, float("inf")
        runs = [_held(own) for own in self.holds]
        token_ms = {
            slots: (self.drafting_ms(slots) + self.verifier.ms(len(runs) * (1 + slots)))
            / sum(1 + held[min(slots, len(held) - 1)] for held in runs)
            for slots in range(1, most + 1)
        }
        slots = min(token_ms, key=lambda one: token_ms[one])
        return slots, max(self.alone_ms / len(runs) - token_ms[slots], 0.0)


@dataclass(frozen=True, slots=True)
class Ahead:
    """A model that drafts for itself: masks behind what a pass reads propose the draft of the next pass.

    ``costs`` are those of its passes, ``masked`` [n] how likely the drafts of mask rows hold, each if all before it do.
    Without masks a token takes a pass. With them a pass may yield a token and a draft, which the next one verifies.
    """

    costs: PassCosts
    masked: Sequence[float]

    def best(self, rows: int, run: Sequence[float], most: int) -> tuple[int, int]:
        """How many slots of a drafted ``run`` to read and how many masks behind them, at most ``most``.

        The pass has ``rows`` rows so far. ``run`` has the probability of each slot, if those before it hold. What is
        saved is the time that the tokens would take otherwise; masks are of use only where all that is read holds.
        """
        if not self.costs.ms(1):
            return len(run), most
        held, share_ms = _held(self.masked), [self.costs.share_ms(1 + masks) for masks in range(len(self.masked) + 1)]
        # What a token takes, without other drafts: in a pass of its own, or by a pass with masks and one without.
        cycles = [(2 * ms + self.costs.added_ms(masks)) / (2 + held[masks]) for masks, ms in enumerate(share_ms)]
        token_ms, alone_ms = min(share_ms[0], *cycles[1:]), share_ms[0]
        # The milliseconds that a draft of so many masks saves, once it is there.
        worth = [0.0, *((1 + more) * token_ms - ms for more, ms in zip(held[1:], share_ms[1:], strict=True))]
        read, reached = _held(run), [1.0, *_chances(run)]
        ms = [self.costs.ms(rows + more) for more in range(len(run) + most + 1)]
        added = [0.0, *(self.costs.added_ms(masks) for masks in range(1, most + 1))]
        ways = [(slots, masks) for slots in range(len(run) + 1) for masks in range(most + 1)]

        def gain(way: tuple[int, int]) -> float:
            slots, masks = way
            return read[slots] * token_ms + reached[slots] * worth[masks] - ms[slots + masks] - added[masks]

        slots, masks = max(ways, key=gain)
        if not masks and most and token_ms >= alone_ms and self.costs.looks(alone_ms, added[most] + ms[most] - ms[0]):
            return slots, most
        return slots, masks


def _chances(holds: Sequence[float]) -> list[float]:
    """The probability of each slot that it and all before it hold."""
    return list(accumulate(holds, mul))


def _held(holds: Sequence[float]) -> list[float]:
    """How many of the first 0, 1, .. slots hold, on average."""
    return list(accumulate(_chances(holds), initial=0.0))
