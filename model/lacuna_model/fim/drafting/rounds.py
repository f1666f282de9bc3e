"""What makes a round fastest: a round drafts for all canvases with a smaller model, and verifies all drafts in a pass.

The smaller model drafts one token after another, each in a pass over one canvas; or, where it has mask rows, a run of
slots for all canvases in one pass. A further pass may read the run's likely tokens as tokens, and mask the doubtful
slots again. What yields most tokens a millisecond is done, by what passes have cost here and how drafts have held.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from lacuna_model.fim.drafting.costs import PassCosts

# A slot at least so likely to be right is read as a token when the others are masked again.
CONFIDENT = 0.5


@dataclass(frozen=True, slots=True)
class Round:
    """A round over ``canvases`` canvases: the costs of the model that verifies, and of the one that drafts.

    ``step`` is how likely the draft after a token that was read holds; ``masked`` [n] how likely those of mask rows do,
    each if all drafts before it hold.
    """

    verifier: PassCosts
    drafter: PassCosts
    canvases: int
    step: float
    masked: Sequence[float]

    def in_turn(self, step_ms: float) -> float:
        """The tokens a millisecond of drafts that are made one after another, ``step_ms`` each."""
        each = self.canvases
        return max(
            self._rate([_chances([self.step] * slots)] * each, each * slots * step_ms)
            for slots in range(len(self.masked) + 2)
        )

    def parallel(self, unread: int) -> tuple[int, float]:
        """How many mask rows for each canvas are best, at least one, and the tokens a millisecond of drafts by them.

        ``unread`` are the tokens that the pass has to read.
        """
        each, run = self.canvases, _chances([self.step, *self.masked])
        rates = [
            self._rate([run[: count + 1]] * each, self.drafter.ms(unread + each * count, masked=True))
            for count in range(1, len(run))
        ]
        best = max(rates, default=0.0)
        return (rates.index(best) + 1, best) if rates else (0, 0.0)

    def again(self, runs: Sequence[Sequence[float]], spent_ms: float, masks: int) -> bool:
        """Whether a further pass pays, with so many mask rows for each canvas, after passes of ``spent_ms``.

        ``runs`` are the probabilities of each canvas's slots, each if those before it hold; none is empty.
        """
        if not runs or not self.verifier.ms(1):
            return False
        kept = [confident(run) for run in runs]
        after = [self._after(run, count, masks) for run, count in zip(runs, kept, strict=True)]
        more_ms = self.drafter.ms(sum(kept) + masks * len(runs), masked=True)
        return self._rate(after, spent_ms + more_ms) > self._rate(list(map(_chances, runs)), spent_ms)

    def _after(self, run: Sequence[float], kept: int, masks: int) -> list[float]:
        """The chances of a run's slots after a further pass: it looks at ``kept`` of them, and masks those behind.

        Where it does not take a slot's draft for right, it has another token there, and nothing behind.
        """
        reached = _chances([1.0, *run[:kept]])
        looked = [before * max(self.step, one) for before, one in zip(reached, [*run, 0.0], strict=False)]
        return [*looked, *(looked[-1] * chance for chance in _chances(self.masked[:masks]))]

    def _rate(self, chances: Sequence[Sequence[float]], drafting_ms: float) -> float:
        """Tokens a millisecond of drafts whose slots hold by such ``chances``, verified as far as is best.

        Every canvas gets one token more than holds. Before any pass was seen, rows cost nothing.
        """
        return max(
            (len(chances) + sum(sum(one[:slots]) for one in chances))
            / (drafting_ms + self.verifier.ms(sum(len(one[:slots]) + 1 for one in chances)) or 1.0)
            for slots in range(max(map(len, chances)) + 1)
        )


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
        ways = [(slots, masks) for slots in range(len(run) + 1) for masks in range(most + 1)]

        def gain(way: tuple[int, int]) -> float:
            slots, masks = way
            took = ms[slots + masks] * (self.costs.dearer if masks else 1.0)
            return read[slots] * token_ms + reached[slots] * worth[masks] - took

        return max(ways, key=gain)

    @property
    def token_ms(self) -> float:
        """What a token takes, without other drafts: in a pass of its own, or by a pass with masks and one without."""
        cycles = [
            self.costs.share_ms(1 + masks) * (1 + self.costs.dearer) / (2 + held)
            for masks, held in enumerate(_held(self.masked))
        ]
        return min(self.costs.share_ms(1), *cycles[1:])

    def in_turn_ms(self, holds: float) -> float:
        """What a token takes with drafts that the model's drafter makes one after another, each of which so holds."""
        return min(
            (self.costs.share_ms(1 + slots) + slots * self.costs.proposal_ms) / (1 + held)
            for slots, held in enumerate(_held([holds] * len(self.masked)))
        )


def confident(run: Sequence[float]) -> int:
    """How many leading slots of a run are read as tokens when the others are masked again; one at least."""
    return max(next((slot for slot, one in enumerate(run) if one < CONFIDENT), len(run)), 1)


def _chances(holds: Sequence[float]) -> list[float]:
    """The probability of each slot that it and all before it hold."""
    return list(accumulate(holds, mul))


def _held(holds: Sequence[float]) -> list[float]:
    """How many of the first 0, 1, .. slots hold, on average."""
    return list(accumulate(_chances(holds), initial=0.0))
