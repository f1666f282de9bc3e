"""The published sampling rules of each family, written out from their papers and repositories in our own words.

Each takes ``predict``, which returns the logits [T, V] of all places of a sequence (with shift: moved by one, so that
the row of a place is the prediction for it), and returns what the gap looks like after every pass.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

Predict = Callable[[Sequence[int]], Tensor]
Slots = list[int | None]
# CAL's constants for code models (arXiv 2602.00476, appendix A).
BIAS = (1.00, 1.77, 0.56, 0.06, 0.24)


class Gap:
    """A gap between two runs of tokens, and what a model predicts for its slots.

    ``text`` are the tokens that may be written; where no other ``special`` one is allowed, they are all. (The published
    code may write any token, and drops the special ones from the text.)
    """

    def __init__(
        self, predict: Predict, before: Sequence[int], after: Sequence[int], mask: int, text: Sequence[int]
    ) -> None:
        self.predict, self.before, self.after, self.mask, self.text = predict, before, after, mask, text
        self.passes = 0

    def rows(self, slots: Slots) -> Tensor:
        self.passes += 1
        ids = [*self.before, *(self.mask if token is None else token for token in slots), *self.after]
        return self.predict(ids)[len(self.before) : len(self.before) + len(slots)]

    def best(self, rows: Tensor, special: Sequence[int] = ()) -> list[int]:
        allowed = torch.tensor([*self.text, *special])
        return [int(allowed[index]) for index in rows[:, allowed].argmax(-1)]


def _probabilities(rows: Tensor, tokens: Sequence[int]) -> Tensor:
    return rows.softmax(-1)[torch.arange(len(rows)), torch.tensor(tokens)]


def _entropies(rows: Tensor) -> Tensor:
    return -(rows.softmax(-1) * rows.log_softmax(-1)).sum(-1)


def _masks(slots: Slots) -> list[int]:
    return [slot for slot, token in enumerate(slots) if token is None]


def dream_on(gap: Gap, start: int, most: int, expand: int, delete: int) -> list[Slots]:
    """DreamOn (github.com/DreamLM/DreamOn, eval/generator.py): one slot a pass, the one of the least entropy.

    A slot that gets the expand token becomes two masks, as long as the gap has room. A slot that gets the end-of-text
    token is deleted, with all masks behind it.
    """
    slots: Slots = [None] * start
    seen = []
    while _masks(slots):
        rows = gap.rows(slots)
        tokens = gap.best(rows, [delete, *([expand] if len(slots) < most else [])])
        entropies = _entropies(rows)
        slot = min(_masks(slots), key=lambda one: float(entropies[one]))
        if tokens[slot] == delete:
            slots = [token for one, token in enumerate(slots) if one < slot or token is not None]
        elif tokens[slot] == expand:
            slots[slot : slot + 1] = [None, None]
        else:
            slots[slot] = tokens[slot]
        seen.append(list(slots))
    return seen


def cal(gap: Gap, start: int, most: int) -> list[int]:
    """CAL: all lengths that are tried, and in the end the best; hill climbing, four worse lengths end a direction."""
    tried: list[int] = []

    def score(length: int) -> float:
        tried.append(length)
        rows = gap.rows([None] * length)
        a, b, c, d, e = BIAS
        bias = a * np.exp(-b * length) + c * np.exp(-d * length) + e
        return float(_probabilities(rows, gap.best(rows)).mean() / bias)

    best, highest = start, score(start)
    for direction in (1, -1):
        length, worse = start + direction, 0
        while 1 <= length <= most:
            found = score(length)
            if found > highest:
                best, highest, worse = length, found, 0
            else:
                worse += 1
                if worse == 4:
                    break
            length += direction
    return [*tried, best]


def _filled(gap: Gap, length: int, chosen: Callable[[Tensor, list[int], list[int]], Sequence[int]]) -> list[Slots]:
    """The gap after every pass: ``chosen`` names the masks that get their best tokens, by rows, tokens and masks."""
    slots: Slots = [None] * length
    seen = []
    while masks := _masks(slots):
        rows = gap.rows(slots)
        tokens = gap.best(rows)
        for slot in chosen(rows, tokens, masks):
            slots[slot] = tokens[slot]
        seen.append(list(slots))
    return seen


def by_entropy(gap: Gap, length: int) -> list[Slots]:
    """Dream (alg="entropy") with as many steps as masks: the place of the least entropy gets its best token."""
    return within_bound(gap, length, -1.0)


def by_confidence(gap: Gap, length: int) -> list[Slots]:
    """LLaDA and A2D (remasking="low_confidence"), as many steps as masks: the most probable best token is kept."""
    return above_threshold(gap, length, 1.0)


def p2(gap: Gap, length: int) -> list[Slots]:
    """Open-dCoder (alg="p2", arXiv 2502.03540), as many steps as masks.

    In step i of n, the (1 - i / n) least probable places of the whole gap become masks; the other masks get their
    tokens.
    """
    slots: Slots = [None] * length
    seen = []
    for step in range(1, length + 1):
        if not _masks(slots):
            break
        rows = gap.rows(slots)
        tokens = gap.best(rows)
        confidence = _probabilities(rows, tokens)
        count = int(torch.tensor(float(length)) * (1 - step / length))
        low = set(torch.argsort(confidence)[:count].tolist())
        slots = [None if one in low else tokens[one] if token is None else token for one, token in enumerate(slots)]
        seen.append(list(slots))
    return seen


def within_bound(gap: Gap, length: int, bound: float) -> list[Slots]:
    """EB-Sampler (arXiv 2505.24857): the surest slots; all but the last have at most this entropy together."""

    def chosen(rows: Tensor, _: list[int], masks: list[int]) -> list[int]:
        entropies = _entropies(rows)
        order = sorted(masks, key=lambda one: float(entropies[one]))
        totals = accumulate((float(entropies[slot]) for slot in order), initial=0.0)
        return [slot for slot, total in zip(order, totals, strict=False) if slot == order[0] or total <= bound]

    return _filled(gap, length, chosen)


def above_threshold(gap: Gap, length: int, threshold: float) -> list[Slots]:
    """Fast-dLLM (arXiv 2505.22618): every slot more probable than a threshold, and the most probable one anyway."""

    def chosen(rows: Tensor, tokens: list[int], masks: list[int]) -> list[int]:
        confidence = _probabilities(rows, tokens)
        surest = max(masks, key=lambda one: float(confidence[one]))
        return [slot for slot in masks if slot == surest or confidence[slot] > threshold]

    return _filled(gap, length, chosen)


class Blocks:
    """A fill behind a prompt that is written block by block; a block begins at every multiple of ``size``.

    With ``behind`` the blocks begin behind the prompt (A2D pads the prompt on the left to whole blocks).
    ``predict`` takes the tokens and the number of the block of each.
    """

    def __init__(
        self,
        predict: Callable[[Sequence[int], Sequence[int]], Tensor],
        prompt: Sequence[int],
        mask: int,
        tokens: Sequence[int],
        ends: Sequence[int],
        size: int,
        *,
        behind: bool = False,
    ) -> None:
        self._predict, self.prompt, self.mask, self.size = predict, list(prompt), mask, size
        self.allowed, self.ends = torch.tensor(list(tokens)), ends
        self.offset = -len(prompt) % size if behind else 0
        self.passes = 0

    def rows(self, slots: Slots) -> Tensor:
        """The outputs at every place of the text, none moved."""
        self.passes += 1
        ids = [*self.prompt, *(self.mask if token is None else token for token in slots)]
        return self._predict(ids, [(place + self.offset) // self.size for place in range(len(ids))])

    def best(self, row: Tensor) -> tuple[int, float]:
        place = int(row[self.allowed].argmax())
        token = int(self.allowed[place])
        return token, float(row.softmax(-1)[token])

    def missing(self, slots: Slots) -> int:
        """How many places are left in the block of the next token."""
        return self.size - (len(self.prompt) + self.offset + len(slots)) % self.size

    def end(self, slots: Slots) -> int | None:
        """The place of a token that ends the text and has no mask before it."""
        known = slots[: _masks(slots)[0]] if _masks(slots) else slots
        return next((place for place, token in enumerate(known) if token in self.ends), None)


def block_by_block(
    text: Blocks, most: int, threshold: float, inner: int | None = None, *, shifted: bool = False
) -> list[Slots]:
    """SDAR (low_confidence_dynamic), and with threshold 1 A2D's bd3lm and Stable-DiffCoder (one token a step).

    Of a block's masks, all more probable than the threshold are filled, and the most probable one. Fast-dLLM v2 does so
    in one part of ``inner`` tokens after another, and its outputs are ``shifted``: the last output of a finished block
    is the first token of the next one.
    """
    slots: Slots = []
    seen = []

    def part(slot: int) -> int:
        return (len(text.prompt) + slot) % text.size // (inner or text.size)

    while len(slots) < most:
        if shifted and text.missing(slots) == text.size:
            slots.append(text.best(text.rows(slots)[-1])[0])
            if (end := text.end(slots)) is not None:
                return [*seen, slots[:end]]
            seen.append(list(slots))
        slots += [None] * text.missing(slots)
        while masks := _masks(slots):
            rows = text.rows(slots)
            own = [slot for slot in masks if part(slot) == part(masks[0])]
            best = {slot: text.best(rows[len(text.prompt) + slot - shifted]) for slot in own}
            surest = max(own, key=lambda one: best[one][1])
            for slot in own:
                if slot == surest or best[slot][1] > threshold:
                    slots[slot] = best[slot][0]
            if (end := text.end(slots)) is not None:
                return [*seen, slots[:end]]
            seen.append(list(slots))
    return seen
