"""The published rules for which slots a pass fills, one implementation of each, and what a request may change.

Sources: entropy order, one slot a pass (Dream, DreamOn); confidence (LLaDA, A2D), with a threshold (Fast-dLLM, SDAR);
entropies within a bound (EB-Sampler); P2, which masks again (Open-dCoder, arXiv 2502.03540).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.sampling import order
from lacuna_model.diffusion.marginals import Marginals, Sampling
from lacuna_model.loading.families import Diffusion

# No fill has more slots.
LONGEST = 1 << 20
# A known token changes where another one is more probable than this, if a request allows it: as in LLaDA2.1.
EDIT = 0.9


@dataclass(frozen=True, slots=True)
class FillRules:
    """How a gap is filled: as the model's family says, or the request's ``options``.

    ``deletes`` are the tokens that stand for nothing. ``corrections`` is how many tokens may change (None: any number).
    """

    how: Diffusion
    sampling: Sampling
    steps: int
    corrections: int | None
    deletes: tuple[int, ...] = ()

    @classmethod
    def of(cls, how: Diffusion, options: DecodeOptions, *, answers: bool = False) -> "FillRules":
        """The rules of a request.

        ``answers``: nothing follows the gap, as in a chat. Such models pad a short answer with the tokens that end it.
        """
        if options.schedule == "single":
            how = replace(how, rule="entropy", bound=-1.0)
        elif options.schedule == "entropy":
            how = replace(how, rule="entropy", bound=options.entropy_bound)
        elif options.schedule == "confidence":
            how = replace(how, rule="confidence", threshold=options.confidence)
        most = options.corrections or None
        if most is not None and how.edit >= 1:
            how = replace(how, edit=EDIT)
        if answers:
            how = replace(how, length="expand", start=LONGEST, expand_id=None)
        deletes = how.ends if answers else () if how.delete_id is None else (how.delete_id,)
        return cls(how, Sampling(options.temperature, how.top_p), options.steps, most, deletes)

    @property
    def marks(self) -> tuple[int, ...]:
        """The tokens that change the length of a gap."""
        expand = self.how.expand_id
        return self.deletes if expand is None else (expand, *self.deletes)

    def drawn(self, seen: Marginals, generator: np.random.Generator) -> Marginals:
        """What a pass has ``seen``, with the tokens first that a request with a temperature draws."""
        if self.sampling.temperature <= 0:
            return seen
        ranks = order(seen.logp, 1.0, generator.gumbel(size=seen.logp.shape))
        ids, logp = np.take_along_axis(seen.ids, ranks, axis=1), np.take_along_axis(seen.logp, ranks, axis=1)
        return Marginals(ids, logp, seen.entropy)

    def chosen(self, opened: Sequence[int], seen: Marginals, step: int) -> list[int]:
        """The open slots that are filled in the pass number ``step``, in their order: at least one.

        With ``steps``, as many as leave no more for the later steps than for this one.
        """
        how = self.how
        if how.rule == "confidence":
            order = sorted(opened, key=lambda slot: -seen.logp[slot, 0])
            count = sum(np.exp(seen.logp[slot, 0]) > how.threshold for slot in order)
        else:
            order = sorted(opened, key=lambda slot: seen.entropy[slot])
            count = within([float(seen.entropy[slot]) for slot in order], how.bound) if how.bound >= 0 else 1
        least = -(-len(opened) // max(self.steps - step, 1)) if self.steps else 1
        return order[: max(int(count), least, 1)]

    def masked_again(self, free: Sequence[int], seen: Marginals, step: int) -> list[int]:
        """The slots of P2 that are masks after the pass number ``step``: the least probable of all ``free`` ones.

        Their share falls from pass to pass, down to none in the last.
        """
        steps = self.steps or len(free)
        share = 1 - min(step + 1, steps) / steps
        count = int(np.float32(len(free)) * np.float32(share))
        return sorted(free, key=lambda slot: seen.logp[slot, 0])[:count]


def within(entropies: Sequence[float], bound: float) -> int:
    """How many slots, given their ``entropies`` (nats) in rising order, may be filled together: at least one.

    The summed entropies of all but the largest bound the error of treating the slots as independent (EB-Sampler, arXiv
    2505.24857).
    """
    return int((np.cumsum(entropies) - entropies <= bound).sum())
