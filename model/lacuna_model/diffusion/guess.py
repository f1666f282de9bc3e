"""The published rules of filling slots, and the guess that follows one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.sampling import order
from lacuna_model.diffusion.slots import Marginals, Sampling, Slots, search
from lacuna_model.loading.families import Diffusion

# No fill has more slots.
LONGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class FillRules:
    """How a gap is filled: as the model's family says, or the request's ``options``.

    ``deletes`` are the tokens that stand for nothing.
    """

    how: Diffusion
    sampling: Sampling
    steps: int
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
        if answers:
            how = replace(how, length="expand", start=LONGEST, expand_id=None)
        deletes = how.ends if answers else () if how.delete_id is None else (how.delete_id,)
        return cls(how, Sampling(options.temperature, how.top_p), options.steps, deletes)

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


class Guess(Slots):
    """A guess of a whole gap.

    ``known`` are the tokens that are written. What follows may have any length, up to ``most`` tokens in all and at
    least ``least``, unless the fill is known to have ``ended`` there.
    """

    def __init__(
        self, rules: FillRules, most: int, known: Sequence[int] = (), *, least: int = 0, ended: bool = False
    ) -> None:
        self._rules, self._most, self._least = rules, most, least
        # As published, a gap is expanded so often at most: a model may expand and delete without end.
        self._expansions = 2 * most
        super().__init__(rules.marks)
        self.known = list(known)
        self.seen: Marginals | None = None  # what the last pass says of its slots
        self._step = 0
        how, fixed = rules.how, len(self.known)
        room = 0 if ended else most - fixed
        self._search = None
        if how.length == "search" and room > 0:
            self._search = search(how.start, max(1, least - fixed), room, how.bias)
            self._begin(next(self._search))
        else:
            self._begin(min(how.start, room))

    def _begin(self, length: int) -> None:
        self.become([*self.known, *[None] * length])

    @property
    def is_whole(self) -> bool:
        """Whether the guess is finished: no slot is a mask."""
        return self._search is None and None not in self.tokens

    @property
    def fixed(self) -> int:
        """The slots at the start that are neither expanded nor deleted."""
        return len(self.known)

    @property
    def may_expand(self) -> bool:
        """Whether a slot may become two."""
        return len(self.tokens) < self._most and self._expansions > 0

    @property
    def may_delete(self) -> bool:
        """Whether enough tokens are known, so that slots may be deleted."""
        return sum(token is not None for token in self.tokens) >= self._least

    @property
    def _open(self) -> list[int]:
        return [slot for slot, token in enumerate(self.tokens) if token is None]

    def take(self, seen: Marginals, generator: np.random.Generator) -> None:
        """Go on by one pass, which has ``seen`` every slot."""
        if self._search is not None:
            self._probe(seen)
            return
        seen = self._rules.drawn(seen, generator)
        if self._rules.how.rule == "p2":
            self._mask_again(seen)
        else:
            self._fill(self._rules.chosen(self._open, seen, self._step), seen)
        self._step += 1

    def _probe(self, seen: Marginals) -> None:
        """Tell the search for a length how sure the model is of its masks at this one."""
        assert self._search is not None
        confidence = float(np.exp(seen.logp[self.fixed :, 0]).mean())
        try:
            self._begin(self._search.send(confidence))
        except StopIteration as end:
            self._search = None
            self._begin(end.value)

    def _mask_again(self, seen: Marginals) -> None:
        """One step of P2: fill all masks but those that are the least probable places of the gap, and mask these."""
        masked = set(self._rules.masked_again(range(self.fixed, len(self.tokens)), seen, self._step))
        self._fill([slot for slot in self._open if slot not in masked], seen)
        for slot in masked:
            self.tokens[slot], self._rows[slot] = None, None

    def _fill(self, slots: Sequence[int], seen: Marginals) -> None:
        """Give slots their best tokens; then slots that the model deletes go, and those that it expands become two."""
        for slot in slots:
            self.put(slot, seen.row(slot))
        how = self._rules.how
        deleted = [slot for slot in slots if self.tokens[slot] in self._rules.deletes]
        if deleted:
            # All masks behind the first deleted slot go, too (DreamOn).
            gone = {slot for slot in range(min(deleted), len(self.tokens)) if self.tokens[slot] is None}
            self.keep([slot for slot in range(len(self.tokens)) if slot not in gone.union(deleted)])
        for slot in reversed(range(len(self.tokens))):
            if how.expand_id is not None and self.tokens[slot] == how.expand_id:
                self._expansions -= 1
                self.tokens[slot : slot + 1] = [None, None]
                self._rows[slot : slot + 1] = [None, None]
