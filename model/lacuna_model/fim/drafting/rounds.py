"""How many masks a pass has: masks or nothing, by what passes have cost here and how drafts have held.

A smaller model drafts for all fills of a round in one pass, whose masks are the slots after the next one
(:class:`Round`). A model with mask rows of its own reads masks behind what its passes read anyway (:class:`Ahead`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from lacuna_model.fim.drafting.costs import PassCosts


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
        token_ms, reached = self.token_ms, [1.0, *_chances(run)]
        # The milliseconds that a draft of so many masks saves, once it is there.
        saved = [
            (1 + held) * token_ms - self.costs.share_ms(1 + masks) for masks, held in enumerate(_held(self.masked))
        ]
        worth, read = [0.0, *saved[1:]], _held(run)
        ms = [self.costs.ms(rows + more) for more in range(len(run) + most + 1)]
        added = [0.0, *(self.costs.added_ms(masks) for masks in range(1, most + 1))]
        ways = [(slots, masks) for slots in range(len(run) + 1) for masks in range(most + 1)]

        def gain(way: tuple[int, int]) -> float:
            slots, masks = way
            return read[slots] * token_ms + reached[slots] * worth[masks] - ms[slots + masks] - added[masks]

        slots, masks = max(ways, key=gain)
        alone_ms = self.costs.share_ms(1)
        if not masks and most and token_ms >= alone_ms and self.costs.looks(alone_ms, added[most] + ms[most] - ms[0]):
            return slots, most
        return slots, masks

    @property
    def token_ms(self) -> float:
        """What a token takes, without other drafts: in a pass of its own, or by a pass with masks and one without."""
        cycles = [
            (2 * self.costs.share_ms(1 + masks) + self.costs.added_ms(masks)) / (2 + held)
            for masks, held in enumerate(_held(self.masked))
        ]
        return min(self.costs.share_ms(1), *cycles[1:])


def _chances(holds: Sequence[float]) -> list[float]:
    """The probability of each slot that it and all before it hold."""
    return list(accumulate(holds, mul))


def _held(holds: Sequence[float]) -> list[float]:
    """How many of the first 0, 1, .. slots hold, on average."""
    return list(accumulate(_chances(holds), initial=0.0))
