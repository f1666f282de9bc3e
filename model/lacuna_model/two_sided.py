"""Reads canvases over a two-sided context: the adapted weights draft, the base's own weights guide."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from lacuna_model.base_side import BaseSide
from lacuna_model.canvas import Canvas, Key, Likelihood, Marginals, PassCounts
from lacuna_model.canvas_side import CanvasSide
from lacuna_model.context import Gap, Layout
from lacuna_model.crossing import Crossing, joined
from lacuna_model.ending import RULED_OUT, best_others, best_tokens, end_odds, with_ends
from lacuna_model.healing import lead
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.open_slots import only, restrict, summary
from lacuna_model.prior.canvas_prior import CanvasPrior, Draft, beside, settle
from lacuna_model.prior.spans import Spoken
from lacuna_model.prior.statements import Statements
from lacuna_model.prior.weights import MixtureWeights, fitted
from lacuna_model.rows import Rows

# So many tokens behind a gap tell how well a fill leads over to them; with 4 and 16 fills are told apart as well.
NUM_BEHIND = 8
# As many can have a part in a token across the end of a gap.
NUM_ACROSS = 2
# The canvas side's share in a guided row halves with every mask in front of the slot: it sees those, the base does not.
CANVAS_DECAY = 0.5
# What the canvas says of an end behind a mask does not count; the prior's word alone does from this probability on.
SURE_END = 0.5
# A reading of the canvas side serves for so many further tokens, which then cost one pass each and not two. Where the
# fill may end (at a line's end, say) it is read anew. With 0, 3 and 15 the fills of the development set are as good.
MAX_AGE = 15
# The base is asked about a slot if the draft in front of it holds with this log-probability (2 %): on two cores a row
# more costs a twentieth of a pass, and less as long as a pass takes the time that the weights take to be read.
WORTH_ASKING = -3.9
FREE_SLOTS = 5


@dataclass(frozen=True, slots=True)
class Reading:
    """What the canvas side said of a block of slots, where the block began and where its frontier was.

    ``rows`` [B, V] are log-probabilities, with the end calibrated; ``ends`` [B] those of the end as it was said,
    ``best`` the best token of every slot but for the end, and ``marginals`` what all that comes to.
    """

    rows: Tensor
    ends: Tensor
    best: list[int]
    marginals: Marginals
    start: int
    frontier: int


class TwoSidedModel:
    """One request's canvases over a cached context."""

    def __init__(
        self,
        model: LoadedModel,
        cache: ContextCache,
        layout: Layout,
        *,
        guidance: float,
        prior: CanvasPrior | None = None,
        weights: MixtureWeights | None = None,
        statements: Sequence[Statements] = (),
        max_age: int = MAX_AGE,
    ) -> None:
        self.counts = PassCounts()
        self._base_side = BaseSide(model.base, cache, layout)
        self._canvas_side = CanvasSide(model, cache, self._base_side)
        self._prefixes = model.prefixes
        self._tokenizer = model.tokenizer
        self._eog_id = model.tokenizer.eog_id
        self._guidance = guidance
        self._prior = prior
        self._weights = weights or fitted()
        # The first tokens behind every gap; where nothing is left of the text, the token between documents.
        self._behind = {
            gap: beside(layout, index)[1][:NUM_BEHIND] or [layout.after.ids[0]] for index, gap in enumerate(layout.gaps)
        }
        self._across = {
            gap: model.tokenizer.decode_bytes(beside(layout, index)[1][:NUM_ACROSS])
            for index, gap in enumerate(layout.gaps)
        }
        self._crossings: dict[Key, Crossing] = {}
        self._statements = dict(zip(layout.gaps, statements, strict=False))  # there may be none
        self._readings: dict[Key, Reading] = {}
        # The slots where the fill may end, as an aged reading says: they are decided by a new one.
        self._undecided: dict[Key, int] = {}
        self._max_age = max_age if guidance > 0 else 0

    @torch.inference_mode()
    def read(self, canvases: Sequence[Canvas]) -> list[Marginals | None]:
        """Marginals of every open canvas: the canvas side's, with prior and, at the frontier, the base's mixed in."""
        opened = [canvas for canvas in canvases if not canvas.closed]
        drafts, exact = self._read(opened, [self._age(canvas) for canvas in opened])
        found = iter(self._marginals(opened, drafts, exact))
        return [None if canvas.closed else next(found) for canvas in canvases]

    def _marginals(self, opened: Sequence[Canvas], drafts: Sequence[Draft], exact: Sequence[int]) -> list[Marginals]:
        """The marginals of the drafts: what was read of most slots stands since the canvas side read them."""
        found = []
        for canvas, count in zip(opened, exact, strict=True):
            read, size = self._readings[canvas.key].marginals, len(canvas.slots)
            found.append(Marginals(read.ids[:size].copy(), read.logp[:size].copy(), read.entropy[:size].copy(), count))
        # One call over all gaps: the vocabulary is wide, neither a launch nor a copy is free.
        changed = [(index, slot) for index, draft in enumerate(drafts) for slot in draft.rows.changed]
        if changed:
            fresh = summary(torch.stack([drafts[index].rows[slot] for index, slot in changed]), self._eog_id)
            for row, (index, slot) in enumerate(changed):
                marginals = found[index]
                marginals.ids[slot], marginals.logp[slot] = fresh.ids[row], fresh.logp[row]
                marginals.entropy[slot] = fresh.entropy[row]
        return found

    def _age(self, canvas: Canvas) -> int:
        """How many tokens were committed since the canvas side read a canvas; too many if it never did."""
        reading = self._readings.get(canvas.key)
        if reading is None or reading.start != len(canvas.done) or canvas.frontier < reading.frontier:
            return self._max_age + 1  # never read, or read with tokens that were taken back since
        if canvas.frontier > reading.frontier and not canvas.is_full and self._due(canvas):
            return self._max_age + 1  # what was read of this slot may be anything
        if self._undecided.get(canvas.key) == len(canvas.done) + canvas.frontier > reading.start + reading.frontier:
            return self._max_age + 1
        # A full block waits for those of other gaps: nothing more is asked of it.
        return 1 if canvas.is_full else canvas.frontier - reading.frontier

    def _keep(self, canvas: Canvas, logits: Tensor) -> None:
        """Remember what the canvas side said of a block [B, V]."""
        rows = self.restrict(canvas, logits).log_softmax(-1)
        ends = rows[:, self._eog_id].clone()
        rows = with_ends(rows, self._eog_id, end_odds(self._weights.drafted_end, ends))
        best, marginals = best_others(rows, self._eog_id), summary(rows.clone(), self._eog_id)
        reading = Reading(rows, ends, best, marginals, len(canvas.done), canvas.frontier)
        self._readings[canvas.key] = reading

    def _read(self, opened: Sequence[Canvas], ages: Sequence[int]) -> tuple[list[Draft], list[int]]:
        """Drafts of all slots, guided from the frontier on, and how many of the guided hold beside each other."""
        if max(ages) == 0 or max(ages) > self._max_age:
            ages = [0] * len(opened)
            for canvas, logits in zip(opened, self.draft(opened), strict=True):
                self._keep(canvas, logits)
        drafts = [self._sharpen(canvas) for canvas in opened]
        exact = self._guide(opened, drafts, ages)
        if any(
            age and not count and not canvas.is_full for canvas, age, count in zip(opened, ages, exact, strict=True)
        ):
            return self._read(opened, [self._max_age + 1] * len(opened))
        return drafts, exact

    @torch.inference_mode()
    def finish_block(self, canvases: Sequence[Canvas]) -> None:
        """Make what the blocks brought context of the blocks to come, as the base reads it."""
        self._base_side.finish_block(canvases, guided=self._guidance > 0)

    def withdraw(self) -> bool:
        """Let the model itself fill what the least likely of the prior's spans was to fill; whether there was one."""
        return self._prior is not None and self._prior.withdraw()

    @torch.inference_mode()
    def likelihood(self, fills: Sequence[Sequence[int]]) -> Likelihood:
        """What the base makes of all fills and, given them, of the text behind each gap."""
        self.counts.base += len(fills)
        total, own, length = 0.0, 0.0, 0
        for (gap, behind), fill in zip(self._behind.items(), fills, strict=True):
            said = self._base_side.log_probabilities(gap, joined(fill, behind, self._tokenizer, gap.prefix))
            total += sum(said)
            length += len(said)
            own += sum(said[: len(fill)])
        return Likelihood(total / math.sqrt(length), own / max(sum(map(len, fills)), 1))

    def draft(self, opened: Sequence[Canvas]) -> list[Tensor]:
        """The canvas side's logits [B, V] of every open canvas, from one pass over all of them."""
        self.counts.canvas += 1
        return self._canvas_side.draft(opened)

    def restrict(self, canvas: Canvas, logits: Tensor) -> Tensor:
        """Rule out what cannot stand in a block [B, V]."""
        return restrict(canvas, logits, self._prefixes, self._eog_id)

    def _sharpen(self, canvas: Canvas) -> Draft:
        """The canvas side's draft with the prior mixed in, where there is one."""
        # An end-of-gap may have cut the block since it was read.
        reading, size = self._readings[canvas.key], len(canvas.slots)
        rows, best = Rows(reading.rows[:size]), reading.best[:size]
        if begun := canvas.begun:
            draft = Draft(rows, best_tokens(rows.read, self._eog_id, best), [None] * size)
            return settle(draft, canvas.frontier, begun)
        if self._prior is not None:
            return self._prior.draft(canvas, rows, best, self.says)
        return Draft(rows, best_tokens(rows.read, self._eog_id, best), [None] * size)

    def says(self, canvas: Canvas, runs: Sequence[Sequence[int]]) -> list[Spoken]:
        """What the base says of texts that may follow what is committed of a canvas."""
        self.counts.base += 1
        written = canvas.tokens()
        said = self._base_side.continuations(canvas.gap, written, runs)
        if not written:
            said = [self.restrict(canvas, logits) for logits in said]
        elif due := self._due(canvas):
            for logits in said:
                only(logits[0], self._prefixes.starting_with(due))
        return [Spoken.of(logits, run) for logits, run in zip(said, runs, strict=True)]

    def _guide(self, opened: Sequence[Canvas], drafts: Sequence[Draft], ages: Sequence[int]) -> list[int]:
        """Mix the base's next-token distribution in from the frontier on, as far as its reading holds.

        The base reads the committed tokens and behind them the draft, left to right. What it says of a slot is exact
        as long as every token in front is the one that will be committed: the first slot where the mixed best differs
        from the draft is the last that counts, as in speculative decoding (arXiv 2211.17192). Returns how many slots
        from the frontier on are exact; what is settled is, and the base is not asked.
        """
        exact = [draft.settled for draft in drafts]
        asked = [i for i, draft in enumerate(drafts) if not draft.settled and not opened[i].is_full]
        if self._guidance == 0 or not asked:
            return exact
        inputs = [
            [drafted if token is None else token for token, drafted in zip(canvas.slots, draft.tokens, strict=True)][
                : self._reach(canvas, draft)
            ]
            for canvas, draft in ((opened[index], drafts[index]) for index in asked)
        ]
        said = self.verify([opened[index] for index in asked], inputs)
        for index, tokens, rows in zip(asked, inputs, said, strict=True):
            exact[index] = self._accept(opened[index], drafts[index], tokens, rows, ages[index])
        return exact

    def _reach(self, canvas: Canvas, draft: Draft) -> int:
        """Up to which open slot the base is asked: no further than the draft in front of it is likely to hold."""
        first, size = canvas.frontier, len(canvas.slots)
        stop = next((slot for slot in range(first, size) if canvas.slots[slot] is not None), size)
        chance = 0.0
        for slot in range(first, stop):
            chance += float(draft.rows[slot][draft.tokens[slot]])
            if chance < WORTH_ASKING:
                return min(max(slot + 1, first + FREE_SLOTS), stop)
        return stop

    def _accept(self, canvas: Canvas, draft: Draft, tokens: Sequence[int], said: Tensor, age: int) -> int:
        """Put guided rows in place of drafted ones as long as the draft holds; returns how many."""
        count, committed = 0, canvas.tokens()
        for i in range(canvas.frontier, len(tokens)):
            if canvas.slots[i] is not None:
                break
            written = [*committed, *tokens[canvas.frontier : i]]
            mixed = self._guided_row(canvas, i, said[i - canvas.frontier], age, written)
            proposal, surely_ends = draft.proposals[i], False
            if self._prior is not None and proposal is not None:
                surely_ends = self._prior.guided(mixed, proposal) > SURE_END
            (best,) = best_tokens(mixed[None], self._eog_id)
            may_end = best == self._eog_id or (age and self._prefixes.ends_line(best))
            too_early = len(canvas.done) + i < canvas.least
            if may_end and (count or age) and not surely_ends and not too_early:
                self._undecided[canvas.key] = len(canvas.done) + i  # the canvas saw a mask in front of this slot
                break
            draft.rows[i] = mixed
            count += 1
            if best != tokens[i] or best == self._eog_id:
                break
        return count

    def _guided_row(self, canvas: Canvas, slot: int, base_row: Tensor, age: int, written: Sequence[int]) -> Tensor:
        """The mixture [V] of what the canvas side and the base say of a slot behind the ``written`` tokens."""
        reading, crossing = self._readings[canvas.key], self._crossing(canvas)
        place, row = len(written), reading.rows[slot]
        going_on = base_row.log_softmax(-1)[self._behind[canvas.gap][0]]
        if written:
            going_on = crossing.ends_behind(written[-1], place - 1, going_on)
        base_row = crossing.credit(base_row, place, None if written else self._prefixes.token(canvas.gap.prefix))
        if slot == canvas.frontier and self._due(canvas):
            first = self._lead(canvas, base_row)
            if first is not None:
                return torch.full_like(row, RULED_OUT).index_fill(0, torch.tensor([first], device=row.device), 0.0)
            base_row = base_row.masked_fill(row <= RULED_OUT / 2, RULED_OUT)
        mixed = self.mix(row, base_row, slot - canvas.frontier + age)
        if statements := self._statements.get(canvas.gap):
            statements.weigh(mixed, written)
        return with_ends(mixed, self._eog_id, end_odds(self._weights.guided_end, reading.ends[slot], going_on))

    def _crossing(self, canvas: Canvas) -> Crossing:
        if canvas.key not in self._crossings:
            self._crossings[canvas.key] = Crossing.of(self._across[canvas.gap], self._prefixes)
        return self._crossings[canvas.key]

    def _due(self, canvas: Canvas) -> bytes:
        """What of the healed text is still to come behind the committed tokens."""
        return self._prefixes.due(canvas.gap.prefix, canvas.tokens())

    def _lead(self, canvas: Canvas, said: Tensor) -> int | None:
        """The token that the canvas begins with, where it is to hold less than the healed text."""
        return (
            None if canvas.tokens() else lead(canvas.gap.prefix, said, self._prefixes, partial(self._probe, canvas.gap))
        )

    def _probe(self, gap: Gap, tokens: Sequence[int]) -> list[Tensor]:
        """The base's logits [V] of what follows in a gap that begins with each of ``tokens``."""
        self.counts.base += 1
        return [rows[1] for rows in self._base_side.continuations(gap, (), [[token, self._eog_id] for token in tokens])]

    def verify(self, opened: Sequence[Canvas], inputs: Sequence[Sequence[int]]) -> list[Tensor]:
        """The base's logits [N - frontier, V] of the slots from the frontier on that ``inputs`` [N] reach."""
        self.counts.base += 1
        return self._base_side.next_logits(opened, inputs)

    def mix(self, canvas_row: Tensor, base_row: Tensor, distance: int) -> Tensor:
        """A geometric mixture [V] of log-probabilities and the base's logits, not normalised and without an end.

        ``distance`` is that of the slot from the frontier.
        """
        own = (1 - self._guidance) * CANVAS_DECAY**distance
        return torch.lerp(base_row, canvas_row, own)
