"""Reads canvases over a two-sided context: the adapted weights draft, the base's own weights guide."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lacuna_kernels import unmask
from lacuna_model.canvas import END_SHARE, Canvas, Marginals
from lacuna_model.context import Layout
from lacuna_model.kv_cache import ContextCache
from lacuna_model.prefixes import PrefixTable
from lacuna_model.prior.canvas_prior import CanvasPrior, Draft, best_tokens
from lacuna_model.transformer import Transformer

NUM_CANDIDATES = 12
# A logit that rules a token out; finite, so that a mixture of weight 0 stays a number.
RULED_OUT = -1e4
END_LOG_ODDS = math.log(END_SHARE / (1 - END_SHARE))
# The canvas side's share in a guided row halves with every mask in front of the slot: it sees those, the base does not.
CANVAS_DECAY = 0.5
# What the canvas says of an end behind a mask does not count; the prior's word alone does from this probability on.
SURE_END = 0.5
# A reading of the canvas side serves for so many further tokens, which then cost one pass each and not two. Where the
# fill may end (at a line's end, say) it is read anew.
MAX_AGE = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """What the canvas side said of a block of slots: logits [B, V], where the block began, where its frontier was."""

    logits: Tensor
    start: int
    frontier: int


@dataclass(slots=True)
class PassCounts:
    """Forward passes over open slots, by the side that made them."""

    canvas: int = 0
    base: int = 0


class TwoSidedModel:
    """One request's canvases over a cached context.

    A canvas pass has the rows [anchor, slot 0, .. slot B-1] of every gap, unmasked: they see all the context, the
    finished blocks and each other. With ``shift`` the output of a row predicts the next slot, so the anchor, the last
    token in front of the block, predicts the first.
    """

    def __init__(
        self,
        base: Transformer,
        canvas: Transformer,
        mask_embedding: Tensor,
        cache: ContextCache,
        layout: Layout,
        prefixes: PrefixTable,
        *,
        eog_id: int,
        guidance: float,
        prior: CanvasPrior | None = None,
        max_age: int = MAX_AGE,
    ) -> None:
        self.counts = PassCounts()
        self._base = base
        self._canvas = canvas
        self._mask_embedding = mask_embedding
        self._cache = cache
        self._prefixes = prefixes
        self._eog_id = eog_id
        self._guidance = guidance
        self._prior = prior
        self._anchors = {
            gap: {"before": layout.before, "after": layout.after}[gap.parent].ids[gap.parent_len - 1]
            for gap in layout.gaps
        }
        # Finished blocks, encoded by the base behind the context: the arena rows by candidate and gap.
        self._fill_rows: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._num_fill = 0
        self._readings: dict[tuple[int, int], Reading] = {}
        self._max_age = max_age if guidance > 0 else 0

    @torch.inference_mode()
    def read(self, canvases: Sequence[Canvas]) -> list[Marginals | None]:
        """Marginals of every open canvas: the canvas side's, with prior and, at the frontier, the base's mixed in."""
        opened = [canvas for canvas in canvases if not canvas.closed]
        drafts, exact = self._read(opened, [self._age(canvas) for canvas in opened])
        rows = [self._end_if_likely(draft.rows) for draft in drafts]
        for index, canvas in enumerate(opened):
            if canvas.candidate and not canvas.frontier and not canvas.done:
                rows[index][0, rows[index][0].topk(canvas.candidate).indices] = RULED_OUT
                exact[index] = min(exact[index], 1)  # what was verified goes on from the best token
        # One call over all gaps: the vocabulary is wide, the launch is not free.
        ids, logp, entropy = unmask(torch.cat(rows), NUM_CANDIDATES)
        sizes = [len(canvas.slots) for canvas in opened]
        found = iter(
            Marginals(i.numpy(force=True), p.numpy(force=True), e.numpy(force=True), count)
            for i, p, e, count in zip(
                *(part.split_with_sizes(sizes) for part in (ids, logp, entropy)), exact, strict=True
            )
        )
        return [None if canvas.closed else next(found) for canvas in canvases]

    def _age(self, canvas: Canvas) -> int:
        """How many tokens were committed since the canvas side read a canvas; too many if it never did."""
        reading = self._readings.get(_key(canvas))
        if reading is None or reading.start != len(canvas.done):
            return self._max_age + 1
        return canvas.frontier - reading.frontier

    def _reading_of(self, canvas: Canvas) -> Tensor:
        """The logits of a block as it is now: an end-of-gap may have cut it since it was read."""
        return self._readings[_key(canvas)].logits[: len(canvas.slots)]

    def _read(self, opened: Sequence[Canvas], ages: Sequence[int]) -> tuple[list[Draft], list[int]]:
        """Drafts of all slots, guided from the frontier on, and how many of the guided hold beside each other."""
        if max(ages) == 0 or max(ages) > self._max_age:
            ages = [0] * len(opened)
            for canvas, rows in zip(opened, self.draft(opened), strict=True):
                reading = Reading(self.restrict(canvas, rows), len(canvas.done), canvas.frontier)
                self._readings[_key(canvas)] = reading
        logits = [self._reading_of(canvas) for canvas in opened]
        drafts = [self._sharpen(canvas, rows) for canvas, rows in zip(opened, logits, strict=True)]
        if self._guidance == 0:
            return drafts, [0] * len(opened)
        exact = self._guide(opened, logits, drafts, ages)
        if any(age and not count for age, count in zip(ages, exact, strict=True)):
            return self._read(opened, [self._max_age + 1] * len(opened))
        return drafts, exact

    @torch.inference_mode()
    def finish_block(self, canvases: Sequence[Canvas]) -> None:
        """Encode what the blocks brought with the base's weights, as context for the blocks to come."""
        rows, owners = [], []
        for canvas in canvases:
            known = len(self._rows_of(canvas))
            fresh = canvas.tokens()[known:]
            rows += [(token, canvas.gap.position + known + i) for i, token in enumerate(fresh)]
            owners += [canvas] * len(fresh)
        arena = self._cache.arena
        start = self._cache.length + self._num_fill
        arena.reserve(start + len(rows))
        mask = torch.zeros((len(rows), start + len(rows)), dtype=torch.bool)
        for i, canvas in enumerate(owners):
            own = self._rows_of(canvas)
            own.append(start + i)
            mask[i, self._cache.visible_to(canvas.gap)] = True
            mask[i, own] = True
        self._base_rows(rows, mask, start)
        self._num_fill += len(rows)

    def draft(self, opened: Sequence[Canvas]) -> list[Tensor]:
        """The canvas side's logits [B, V] of every open canvas, from one pass over all of them."""
        model = self._canvas
        shift = model.config.shift
        device = self._mask_embedding.device
        ids: list[int] = []
        positions: list[int] = []
        masked: list[bool] = []
        heads: list[int] = []
        for canvas in opened:
            first = len(ids)
            if shift:
                ids.append(self._anchor(canvas))
                masked.append(False)
            ids += [0 if token is None else token for token in canvas.slots]
            masked += [token is None for token in canvas.slots]
            positions += range(canvas.position - shift, canvas.position + len(canvas.slots))
            heads += range(first, first + len(canvas.slots))
        x = model.embed(torch.tensor([ids], device=device))
        x[0, torch.tensor(masked, device=device)] = self._mask_embedding
        arena = self._cache.arena
        arena.tail = self._cache.length + self._num_fill
        arena.reserve(arena.tail + len(ids))
        mask = self._apart(opened, arena.tail, len(ids)) if any(canvas.candidate for canvas in opened) else None
        hidden = model.hidden(x, torch.tensor(positions, device=device), arena, mask)
        self.counts.canvas += 1
        logits = model.head(hidden[0, heads])
        return list(logits.split_with_sizes([len(canvas.slots) for canvas in opened]))

    def _apart(self, opened: Sequence[Canvas], tail: int, count: int) -> Tensor:
        """What the rows of a pass over several candidates see [R, K]: the context, and what is their candidate's."""
        size = [len(canvas.slots) + self._canvas.config.shift for canvas in opened]
        owners = torch.tensor([canvas.candidate for canvas, n in zip(opened, size, strict=True) for _ in range(n)])
        mask = torch.zeros((count, tail + count), dtype=torch.bool)
        mask[:, : self._cache.length] = True
        for (candidate, _), rows in self._fill_rows.items():
            mask[:, rows] = (owners == candidate)[:, None]
        mask[:, tail:] = owners[:, None] == owners[None]
        return mask.to(self._mask_embedding.device)

    def _rows_of(self, canvas: Canvas) -> list[int]:
        return self._fill_rows[_key(canvas)]

    def restrict(self, canvas: Canvas, logits: Tensor) -> Tensor:
        """Rule out what cannot stand: tokens that are no text, a start without the healed text, an end too early."""
        healed = bool(canvas.gap.prefix) and not canvas.done
        logits.index_fill_(1, self._prefixes.specials_but(self._eog_id), RULED_OUT)
        early = canvas.least - len(canvas.done)
        if early > 0:
            logits[:early, self._eog_id] = RULED_OUT
        if healed:
            allowed = self._prefixes.starting_with(canvas.gap.prefix)
            kept = logits[0, allowed].clone()
            logits[0] = RULED_OUT
            logits[0, allowed] = kept
        return logits

    def _end_if_likely(self, rows: Tensor) -> Tensor:
        """Let end-of-gap be the best candidate where its probability is over ``END_SHARE``, and only there.

        It competes with the sum of all tokens, not with the best of them: many ways to go on are no reason to end.
        """
        end = rows[:, self._eog_id].clone()
        going_on = rows.index_fill(1, torch.tensor([self._eog_id], device=rows.device), RULED_OUT)
        best = going_on.amax(-1)
        likely = end - going_on.logsumexp(-1) > END_LOG_ODDS
        rows[:, self._eog_id] = torch.where(likely, torch.maximum(end, best + 1e-3), torch.minimum(end, best - 1e-3))
        return rows

    def _sharpen(self, canvas: Canvas, logits: Tensor) -> Draft:
        """The canvas side's draft with the prior mixed in, where there is one."""
        if self._prior is not None:
            return self._prior.draft(canvas, logits)
        rows = logits.log_softmax(-1)
        return Draft(rows, best_tokens(rows, self._eog_id), [None] * len(rows))

    def _guide(
        self, opened: Sequence[Canvas], logits: Sequence[Tensor], drafts: Sequence[Draft], ages: Sequence[int]
    ) -> list[int]:
        """Mix the base's next-token distribution in from the frontier on, as far as its reading holds.

        The base reads the committed tokens and behind them the draft, left to right. What it says of a slot is exact
        as long as every token in front is the one that will be committed: the first slot where the mixed best differs
        from the draft is the last that counts, as in speculative decoding (arXiv 2211.17192). Returns how many slots
        from the frontier on are exact.
        """
        inputs = [
            [drafted if token is None else token for token, drafted in zip(canvas.slots, draft.tokens, strict=True)]
            for canvas, draft in zip(opened, drafts, strict=True)
        ]
        said = self.verify(opened, inputs)
        return [self._accept(*parts) for parts in zip(opened, logits, drafts, inputs, said, ages, strict=True)]

    def _accept(
        self, canvas: Canvas, logits: Tensor, draft: Draft, tokens: Sequence[int], said: Tensor, age: int
    ) -> int:
        """Put guided rows in place of drafted ones as long as the draft holds; returns how many."""
        count = 0
        for i in range(canvas.frontier, len(canvas.slots)):
            if canvas.slots[i] is not None:
                break
            base_row = said[i - canvas.frontier]
            if i == 0 and canvas.gap.prefix and not canvas.done:
                base_row = base_row.masked_fill(logits[0] <= RULED_OUT, RULED_OUT)
            mixed = self.mix(logits[i], base_row, i - canvas.frontier + age)
            proposal, surely_ends = draft.proposals[i], False
            if self._prior is not None and proposal is not None:
                surely_ends = self._prior.guided(mixed, proposal) > SURE_END
            (best,) = best_tokens(mixed[None], self._eog_id)
            may_end = best == self._eog_id or (age and self._prefixes.ends_line(best))
            if may_end and (count or age) and not surely_ends:
                break  # the canvas saw a mask in front of this slot: the next pass tells whether the fill ends here
            draft.rows[i] = mixed
            count += 1
            if best != tokens[i] or best == self._eog_id:
                break
        return count

    def verify(self, opened: Sequence[Canvas], inputs: Sequence[Sequence[int]]) -> list[Tensor]:
        """The base's logits [B - frontier, V] of every slot from the frontier on, given ``inputs`` in the slots."""
        rows: list[tuple[int, int]] = []
        stretches: list[tuple[int, int]] = []
        heads: list[int] = []
        for canvas, tokens in zip(opened, inputs, strict=True):
            first = len(rows)
            line = [self._anchor(canvas), *tokens[:-1]]
            rows += [(token, canvas.position - 1 + i) for i, token in enumerate(line)]
            stretches.append((first, len(line)))
            heads += range(first + canvas.frontier, first + len(line))
        start = self._cache.length + self._num_fill
        mask = torch.zeros((len(rows), start + len(rows)), dtype=torch.bool)
        for canvas, (first, count) in zip(opened, stretches, strict=True):
            own = self._rows_of(canvas)
            stream = self._cache.visible_to(canvas.gap)
            # The anchor is read anew for its output: the row that the cache has of it is left out.
            seen = [*range(stream.start, stream.stop), *own][:-1]
            block = slice(first, first + count)
            mask[block, torch.tensor(seen, dtype=torch.long)] = True
            mask[block, start + first : start + first + count] = torch.ones((count, count), dtype=torch.bool).tril()
        hidden = self._base_rows(rows, mask, start)
        self.counts.base += 1
        said = self._base.head(hidden[0, heads])
        return list(said.split_with_sizes([len(canvas.slots) - canvas.frontier for canvas in opened]))

    def _base_rows(self, rows: Sequence[tuple[int, int]], mask: Tensor, start: int) -> Tensor:
        """Hidden states of base rows (token, position), written from arena row ``start`` on."""
        device = self._mask_embedding.device
        arena = self._cache.arena
        arena.tail = start
        arena.reserve(start + len(rows))
        ids = torch.tensor([[token for token, _ in rows]], device=device)
        positions = torch.tensor([position for _, position in rows], device=device)
        return self._base.hidden(self._base.embed(ids), positions, arena, mask.to(device))

    def mix(self, canvas_row: Tensor, base_row: Tensor, distance: int) -> Tensor:
        """A geometric mixture [V] of two rows of logits, as log-probabilities.

        ``distance`` is that of the slot from the frontier. How likely the gap ends here is the canvas's to say alone.
        """
        own = (1 - self._guidance) * CANVAS_DECAY**distance
        drafted = canvas_row.log_softmax(-1)
        end = drafted[self._eog_id].clone()
        drafted[self._eog_id] = RULED_OUT
        mixed = own * drafted + (1 - own) * base_row.log_softmax(-1)
        mixed[self._eog_id] = RULED_OUT
        mixed = mixed.log_softmax(-1) + torch.log1p(-end.exp().clamp_max(1 - 1e-6))
        mixed[self._eog_id] = end
        return mixed

    def _anchor(self, canvas: Canvas) -> int:
        return canvas.done[-1] if canvas.done else self._anchors[canvas.gap]


def _key(canvas: Canvas) -> tuple[int, int]:
    """What tells a canvas from the others of a request: its candidate, and the place of its gap."""
    return canvas.candidate, canvas.gap.position
