"""The slots of a gap, what a model says of them, the published rules of filling them, and a guess that follows one."""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import unmask
from lacuna_model.core.constraint import Run
from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.fill import Drafted
from lacuna_model.decode.sampling import NUM_CANDIDATES, RULED_OUT, order
from lacuna_model.loading.families import Diffusion

# No fill has more slots.
LONGEST = 1 << 20
# So many lengths in a row that are no better end the search for one in their direction.
PATIENCE = 4


@dataclass(frozen=True, slots=True)
class Marginals:
    """What a pass says of B slots: candidates [B, K] best first, log-probabilities [B, K], and entropy [B] (nats)."""

    ids: NDArray[np.int64]
    logp: NDArray[np.float32]
    entropy: NDArray[np.float32]

    def row(self, slot: int) -> "Marginals":
        """Those of one slot."""
        one = slice(slot, slot + 1)
        return Marginals(self.ids[one], self.logp[one], self.entropy[one])


def summary(logits: Tensor, ruled: Tensor, temperature: float = 0.0, top_p: float = 1.0) -> Marginals:
    """The marginals of the rows ``logits`` [R, V], which are overwritten, without the tokens ``ruled`` out [R, V].

    Probabilities and entropies are those of all tokens, so that what is ruled out still counts as doubt. With a
    ``temperature``, tokens will be drawn: from the most probable ones that have the probability ``top_p`` together.
    """
    if temperature > 0:
        logits /= temperature
    logp = logits.float().log_softmax(-1)
    probabilities = logp.exp()
    entropy = -(probabilities * logp).sum(-1)
    left = (1 - (probabilities * ruled).sum(-1)).clamp_min(1e-6).log()
    ids, best = unmask(logp.masked_fill_(ruled, RULED_OUT), NUM_CANDIDATES)
    best += left[:, None]
    found = Marginals(ids.numpy(force=True), best.numpy(force=True), entropy.numpy(force=True))
    return _nucleus(found, top_p) if temperature > 0 and top_p < 1 else found


def _nucleus(seen: Marginals, top_p: float) -> Marginals:
    """The candidates up to the first with which they have the probability ``top_p``, and the entropy of these."""
    probabilities = np.exp(seen.logp)
    kept = np.cumsum(probabilities, axis=1) - probabilities <= top_p
    total = (probabilities * kept).sum(1, keepdims=True)
    share = np.where(kept, probabilities / total, 1.0)
    logp = np.where(kept, np.log(share), RULED_OUT).astype(np.float32)
    return Marginals(seen.ids, logp, -(share * np.log(share)).sum(1).astype(np.float32))


@lru_cache(maxsize=1024)
def sure(token: int) -> Marginals:
    """The marginals of a known slot: its token with probability 1. They are shared, and must not be changed."""
    ids = np.zeros((1, NUM_CANDIDATES), dtype=np.int64)
    logp = np.full((1, NUM_CANDIDATES), RULED_OUT, dtype=np.float32)
    ids[0, 0], logp[0, 0] = token, 0.0
    return Marginals(ids, logp, np.zeros(1, dtype=np.float32))


class Slots:
    """The slots of a gap: the ``rows`` of those that have a token, which is their best; None for a mask.

    ``offered``: the constraint has been asked about them. ``seen`` is what the last pass says of slots. ``marks`` are
    the tokens that are no text, and so no alternative to a token: they end a text, or change its length.
    """

    def __init__(self, marks: Sequence[int] = ()) -> None:
        self._marks = list(marks)
        self.rows: list[Marginals | None] = []
        self.seen: dict[int, Marginals] = {}
        self.offered = False

    @property
    def tokens(self) -> list[int | None]:
        """The token of each slot, None for a mask."""
        return [None if row is None else int(row.ids[0, 0]) for row in self.rows]

    @property
    def masks(self) -> list[int]:
        """The slots without a token."""
        return [slot for slot, row in enumerate(self.rows) if row is None]

    def become(self, tokens: Sequence[int], masks: int = 0) -> None:
        """Take these tokens as given, with masks behind them."""
        self.rows = [*map(sure, tokens), *[None] * masks]

    def put(self, slot: int, row: Marginals) -> None:
        """Give a slot the best token of its ``row``, in which no mark is likelier than what is text."""
        marked = np.isin(row.ids[0], self._marks)
        marked[0] = False
        if marked.any():
            ranks = np.argsort(marked, kind="stable")
            logp = np.where(marked, np.float32(RULED_OUT), row.logp[0])[ranks]
            row = Marginals(row.ids[:, ranks], logp[None], row.entropy)
        self.rows[slot] = row

    def run(self, first: int, room: int, end: int | None) -> Run:
        """The tokens from slot ``first`` on, of ``room`` slots, none a mask; ``end`` follows, if there is one."""
        rows = [row for row in self.rows[first:room] if row is not None]
        if end is not None and len(self.rows) < room:
            rows.append(sure(end))
        ids, logp = np.zeros((0, NUM_CANDIDATES), np.int64), np.zeros((0, NUM_CANDIDATES), np.float32)
        return Run(
            np.concatenate([ids, *(row.ids for row in rows)]), np.concatenate([logp, *(row.logp for row in rows)])
        )

    def drafted(self, first: int) -> list[Drafted]:
        """The slots from ``first`` on: masks as the last pass has seen them, up to the first that it has not."""
        found = list[Drafted]()
        for slot in range(first, len(self.rows)):
            row = self.rows[slot] or self.seen.get(slot)
            if row is None:
                break
            found.append(Drafted(int(row.ids[0, 0]), float(np.exp(row.logp[0, 0]))))
        return found


@dataclass(frozen=True, slots=True)
class FillRules:
    """How a gap is filled: as the model's family says, or the request's ``options``.

    ``deletes`` are the tokens that stand for nothing.
    """

    how: Diffusion
    temperature: float
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
        return cls(how, options.temperature, options.steps, deletes)

    @property
    def marks(self) -> tuple[int, ...]:
        """The tokens that change the length of a gap."""
        expand = self.how.expand_id
        return self.deletes if expand is None else (expand, *self.deletes)

    def drawn(self, seen: Marginals, generator: np.random.Generator) -> Marginals:
        """What a pass has ``seen``, with the tokens first that a request with a temperature draws."""
        if self.temperature <= 0:
            return seen
        ranks = order(seen.logp, 1.0, generator.gumbel(size=seen.logp.shape))
        ids, logp = np.take_along_axis(seen.ids, ranks, axis=1), np.take_along_axis(seen.logp, ranks, axis=1)
        return Marginals(ids, logp, seen.entropy)

    def chosen(self, opened: Sequence[int], seen: Marginals, step: int) -> list[int]:
        """The open slots that are filled in the pass number ``step``, in their order: at least one.

        By entropy they are those whose sum without the largest keeps within a bound, which bounds the error of taking
        them as independent (EB-Sampler, arXiv 2505.24857). With ``steps``, as many as leave no more for the later steps
        than for this one.
        """
        how, count = self.how, 1
        if how.rule == "confidence":
            surest = sorted(opened, key=lambda slot: -seen.logp[slot, 0])
            count = sum(bool(np.exp(seen.logp[slot, 0]) > how.threshold) for slot in surest)
        else:
            surest = sorted(opened, key=lambda slot: seen.entropy[slot])
            if how.bound >= 0:
                entropies = [float(seen.entropy[slot]) for slot in surest]
                count = int((np.cumsum(entropies) - entropies <= how.bound).sum())
        least = -(-len(opened) // max(self.steps - step, 1)) if self.steps else 1
        return surest[: max(count, least, 1)]


class Guess(Slots):
    """A guess of a whole gap.

    ``known`` are the tokens that are written. What follows may have any length, up to ``most`` tokens in all and at
    least ``least``, unless the fill is known to have ``ended`` there.
    """

    def __init__(
        self, rules: FillRules, most: int, known: Sequence[int] = (), *, least: int = 0, ended: bool = False
    ) -> None:
        super().__init__(rules.marks)
        self._rules, self._most, self._least = rules, most, least
        # As published, a gap is expanded so often at most: a model may expand and delete without end.
        self._expansions = 2 * most
        self.known = list(known)
        self._step = 0
        how, room = rules.how, 0 if ended else most - len(self.known)
        searches = how.length == "search" and room > 0
        self._search = search(how.start, max(1, least - len(self.known)), room, how.bias) if searches else None
        self.become(self.known, next(self._search) if self._search is not None else min(how.start, room))

    @property
    def is_whole(self) -> bool:
        """Whether the guess is finished: no slot is a mask."""
        return self._search is None and None not in self.rows

    @property
    def allowed(self) -> tuple[int, ...]:
        """The marks that slots may have: they become two where there is room, and go where enough tokens are known."""
        may_expand = len(self.rows) < self._most and self._expansions > 0
        may_delete = len(self.rows) - len(self.masks) >= self._least
        return tuple(one for one in self._marks if (may_delete if one in self._rules.deletes else may_expand))

    def take(self, seen: Marginals, generator: np.random.Generator) -> None:
        """Go on by one pass, which has ``seen`` every slot."""
        self.seen = {slot: seen.row(slot) for slot in range(len(self.rows))}
        if self._search is not None:
            confidence = float(np.exp(seen.logp[len(self.known) :, 0]).mean())
            try:
                self.become(self.known, self._search.send(confidence))
            except StopIteration as end:
                self._search = None
                self.become(self.known, end.value)
            return
        seen = self._rules.drawn(seen, generator)
        if self._rules.how.rule == "p2":
            self._mask_again(seen)
        else:
            self._fill(self._rules.chosen(self.masks, seen, self._step), seen)
        self._step += 1

    def _mask_again(self, seen: Marginals) -> None:
        """One step of P2: fill all masks but those that are the least probable places of the gap, and mask these.

        Their share falls from pass to pass, down to none in the last.
        """
        free = range(len(self.known), len(self.rows))
        steps = self._rules.steps or len(free)
        count = int(np.float32(len(free)) * np.float32(1 - min(self._step + 1, steps) / steps))
        masked = set(sorted(free, key=lambda slot: seen.logp[slot, 0])[:count])
        self._fill([slot for slot in self.masks if slot not in masked], seen)
        for slot in masked:
            self.rows[slot] = None

    def _fill(self, slots: Sequence[int], seen: Marginals) -> None:
        """Give slots their best tokens; then slots that the model deletes go, and those that it expands become two."""
        for slot in slots:
            self.put(slot, seen.row(slot))
        tokens = self.tokens
        deleted = [slot for slot in slots if tokens[slot] in self._rules.deletes]
        if deleted:
            # All masks behind the first deleted slot go, too (DreamOn).
            gone = {*deleted, *(slot for slot in self.masks if slot > min(deleted))}
            self.rows = [row for slot, row in enumerate(self.rows) if slot not in gone]
        for slot, token in reversed(list(enumerate(self.tokens))):
            if token is not None and token == self._rules.how.expand_id:
                self._expansions -= 1
                self.rows[slot : slot + 1] = [None, None]


def search(start: int, least: int, most: int, bias: Sequence[float]) -> Generator[int, float, int]:
    """Yields the lengths to try, takes the mean confidence of the first step at each, and returns the best length.

    From ``start`` it climbs to longer lengths, then to shorter ones, each until ``PATIENCE`` lengths were no better.
    A confidence is divided by what it is at such a length whatever the text: a e^(-bL) + c e^(-dL) + e, with ``bias``
    (a, b, c, d, e).
    """
    a, b, c, d, e = bias

    def biased(length: int) -> float:
        return a * math.exp(-b * length) + c * math.exp(-d * length) + e

    first = best = min(max(start, least), most)
    highest = (yield first) / biased(first)
    for direction in (1, -1):
        length, worse = first + direction, 0
        while least <= length <= most and worse < PATIENCE:
            confidence = (yield length) / biased(length)
            worse = 0 if confidence > highest else worse + 1
            if not worse:
                best, highest = length, confidence
            length += direction
    return best
