"""Reads fills with a model that writes block after block: Stable-DiffCoder, Fast-dLLM v2, SDAR, A2D's bd3lm.

A token attends to those of its own block and of the blocks before it. So the keys and values of finished blocks are
exact. Such a model sees nothing behind a gap: a fill-in-the-middle prompt, or a chat, has all text before it.
"""

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor

from lacuna_model.core.constraint import Run
from lacuna_model.core.context import Layout
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.fill import Fill
from lacuna_model.diffusion.guess import Slots
from lacuna_model.diffusion.reading import DiffusionReader, LoadedDiffusion, SequenceRows
from lacuna_model.fim.prompt import whole_prompt
from lacuna_model.loading.families import Diffusion
from lacuna_model.network.arena import Arena, PassPart
from lacuna_model.text.diff import num_common


class Writing(Slots):
    """A fill that is written behind its ``prompt``, and the keys and values of the blocks that are finished.

    ``ended``: the fill ends with its last token.
    """

    def __init__(self, prompt: Sequence[int], arena: Arena, how: Diffusion, ends: Sequence[int] = ()) -> None:
        super().__init__(ends)
        self.prompt = list(prompt)
        self.ended = False
        self.step = 0
        self.arena = arena
        self.stored = 0
        self._how = how
        # Where blocks begin behind the prompt, the first block of the prompt is short.
        self._offset = -len(prompt) % how.block_size if how.after_prompt else 0

    def block(self, position: int) -> int:
        """The number of the block of a position."""
        return (position + self._offset) // self._how.block_size

    def start(self, block: int) -> int:
        """The first position of a block."""
        return max(block * self._how.block_size - self._offset, 0)

    @property
    def end(self) -> int:
        """The position behind the last slot."""
        return len(self.prompt) + len(self.rows)

    def go_on_from(self, tokens: Sequence[int]) -> None:
        """Go on from these tokens, which the constraint has left."""
        same = num_common(self.tokens, tokens)
        self.become(tokens)
        self.offered = False
        self.stored = min(self.stored, self.start(self.block(len(self.prompt) + same)))

    @property
    def at_border(self) -> bool:
        """Whether the slots end with a block, or none are there behind a prompt that does."""
        return self.start(self.block(self.end)) == self.end

    def opened(self) -> list[int] | None:
        """The masks that the next pass may fill: those of the first block, and the first part of one, that has any.

        There are some, if need be new ones, but where the first token of a block has to be predicted before (with
        shift); None where the fill has ended.
        """
        if None not in self.rows:
            if self.ended:
                return None
            if self._how.shift and self.at_border:
                return []
            self.rows += [None] * (self.start(self.block(self.end) + 1) - self.end)
            self.step = 0
        size, at, masks = self._how.inner or self._how.block_size, len(self.prompt), self.masks

        def part(slot: int) -> tuple[int, int]:
            block = self.block(at + slot)
            return block, (at + slot - self.start(block)) // size

        return [slot for slot in masks if part(slot) == part(masks[0])]

    def pass_rows(self, slots: Sequence[int], mask_id: int) -> SequenceRows:
        """The rows of the next pass: all that is not stored up to the end of the block of the ``slots``.

        Without slots it predicts the token behind the end.
        """
        text = [*self.prompt, *(mask_id if token is None else token for token in self.tokens)]
        at, shift = len(self.prompt), self._how.shift
        end = min(self.start(self.block(at + slots[0]) + 1), len(text)) if slots else len(text)
        # With shift, a block whose first token is open is predicted by the last output of the block before.
        first = min(self.stored, self.start(self.block(at + slots[0] - shift))) if slots else self.stored
        self.arena.tail = first
        self.arena.reserve(end)
        blocks = torch.tensor([self.block(place) for place in range(end)])
        shown = None if self.block(first) == self.block(end - 1) else blocks[None] <= blocks[first:, None]
        mask = None if shown is None else shown.to(self.arena.keys.device)
        wanted = [at + slot - shift - first for slot in slots] if slots else [end - 1 - first]
        # What stands before the block of the last row is finished.
        self.stored = self.start(self.block(end - 1)) if slots else end
        return SequenceRows(text[first:end], list(range(first, end)), PassPart(end - first, self.arena, mask), [wanted])


class BlockReader(DiffusionReader[Writing]):
    """Reads one request's fills, a gap after the other, each block by block."""

    def __init__(self, model: LoadedDiffusion, layout: Layout, options: DecodeOptions) -> None:
        """Raises RequestError for a model that sees no suffix."""
        super().__init__(model, layout, options)
        fim = model.tokenizer.fim
        if fim is None and layout.answering is None:
            raise RequestError(f"the model {model.name} reads nothing behind a gap; it only takes instructions")
        self._ends = model.how.ends if fim is None or layout.answering is not None else tuple(sorted(fim.ends))

    @torch.inference_mode()
    def read(self, fills: Sequence[Fill]) -> list[Run | None]:
        """What the first open gap of each candidate has behind one more pass, once a block has no mask; others wait."""
        active, wanted = list[tuple[Fill, Writing]](), list[tuple[Fill, Writing, list[int]]]()
        for _, group in groupby(fills, lambda fill: fill.candidate):
            own = list(group)
            if (fill := next((one for one in own if one.is_open), None)) is None:
                continue
            active.append((fill, self._writing(fill, own)))
            if (slots := active[-1][1].opened()) is not None:
                wanted.append((*active[-1], slots))
        read = self._read([writing.pass_rows(slots, self._model.how.mask_id) for _, writing, slots in wanted])
        for (fill, writing, slots), (logits,) in zip(wanted, read, strict=True):
            self._take(fill, writing, slots, logits)
        runs = {fill.key: self._offered(fill, writing) for fill, writing in active}
        return [runs.get(fill.key) for fill in fills]

    def _writing(self, fill: Fill, group: Sequence[Fill]) -> Writing:
        """A fill as far as it is written."""
        writing = self._slots.get(fill.key)
        if writing is not None and not writing.offered:
            return writing
        if writing is None:
            arena = Arena(self._model.config, self._model.device, self._model.cache_dtype)
            prompt = self._prompt(fill.gap.index, [one.tokens for one in group])
            writing = self._slots[fill.key] = Writing(prompt, arena, self._model.how, self._ends)
        tokens, writing.ended = self._known(fill)
        writing.go_on_from(tokens)
        return writing

    def _prompt(self, gap: int, fills: Sequence[Sequence[int]]) -> list[int]:
        """The prompt of a gap, with the fills of the gaps before it, and without the gaps behind it."""
        layout, fim = self._layout, self._model.tokenizer.fim
        if layout.answering is not None:
            return [*layout.opening, *layout.segments[0], layout.answering.after]
        assert fim is not None
        before: list[int] = []
        for segment, fill in zip(layout.segments[:gap], fills, strict=False):
            before += [*segment, *fill]
        before += layout.segments[gap]
        after = [token for segment in layout.segments[gap + 1 :] for token in segment]
        return whole_prompt(fim, layout.opening, before, after)

    def _take(self, fill: Fill, writing: Writing, slots: Sequence[int], logits: Tensor) -> None:
        """Fill the slots that the rules choose; without slots, the token behind the end is the best one."""
        known = writing.masks[0] if writing.masks else len(writing.rows)
        ends = self._ends if known >= fill.least else ()
        seen = self._rules.drawn(self._model.seen(logits, ends, 0, self._rules.temperature), self._generator)
        if not slots:
            writing.rows.append(None)
            writing.put(len(writing.rows) - 1, seen.row(0))
        else:
            writing.seen = {slot: seen.row(row) for row, slot in enumerate(slots)}
            for row in self._rules.chosen(range(len(slots)), seen, writing.step):
                writing.put(slots[row], writing.seen[slots[row]])
            writing.step += 1
        if (end := self._end_of(writing, self._ends)) is not None:
            del writing.rows[end:]
            writing.ended = True

    def _offered(self, fill: Fill, writing: Writing) -> Run | None:
        """The tokens behind those of a fill; None while a block has a mask."""
        full = len(writing.rows) >= fill.most
        if None in writing.rows or not (writing.ended or full or (writing.rows and writing.at_border)):
            return None
        writing.offered = True
        return writing.run(len(fill.tokens), fill.most, self._eog_id if writing.ended and not full else None)
