"""Diffusion models as the engine holds them, and reading fills with both kinds of them.

Of whole-sequence models, Dream, LLaDA and others, all tokens attend to each other. Stable-DiffCoder, Fast-dLLM v2, SDAR
and A2D's bd3lm write block after block: a token attends to those of its own block and of the blocks before it. So the
keys and values of finished blocks are exact. Such a model sees nothing behind a gap: a fill-in-the-middle prompt, or a
chat, has all text before it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from lacuna_model.core.constraint import Run
from lacuna_model.core.context import Layout
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.fill import Drafted, Fill, Key, Reader
from lacuna_model.decode.sampling import PrefixTable
from lacuna_model.diffusion.guess import FillRules, Guess, Marginals, Slots, summary
from lacuna_model.fim.prompt import whole_prompt
from lacuna_model.loading.chat import ChatTemplate, read_chat_template
from lacuna_model.loading.families import Diffusion
from lacuna_model.network.arena import Arena, PassPart
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.transformer import Transformer
from lacuna_model.text.diff import num_common
from lacuna_model.tokenizer import Tokenizer

# Tokens on each side of a gap that every pass reads; of these, the output at the last one before a gap may predict its
# first slot.
NEAR = 4
S = TypeVar("S", bound=Slots)


@dataclass(frozen=True)
class LoadedDiffusion:
    """A diffusion model: how it is read (``how``), and its parts. Keys and values are kept in ``cache_dtype``."""

    name: str
    how: Diffusion
    config: ModelConfig
    tokenizer: Tokenizer
    transformer: Transformer
    prefixes: PrefixTable
    cache_dtype: torch.dtype
    path: Path

    @cached_property
    def chat(self) -> ChatTemplate | None:
        """The model's own chat template, read when a chat first needs it; None where it has none."""
        return read_chat_template(self.path, self.tokenizer)

    @property
    def device(self) -> torch.device:
        """Where the model runs."""
        return self.transformer.final_norm.device

    @cached_property
    def _specials(self) -> Tensor:
        """The special tokens, True in a row of the vocabulary. [V]"""
        found = torch.zeros(self.config.vocab_size, dtype=torch.bool)
        found[sorted(self.tokenizer.special_ids)] = True
        return found.to(self.device)

    def seen(self, logits: Tensor, allowed: Sequence[int], fixed: int, temperature: float) -> Marginals:
        """The marginals of a gap's slots, from their ``logits`` [R, V], which are overwritten.

        Special tokens are ruled out, but the ``allowed`` ones after the first ``fixed`` slots.
        """
        ruled = self._specials.expand(len(logits), -1).clone()
        for token in allowed:
            ruled[fixed:, token] = False
        return summary(logits, ruled, temperature, self.how.top_p)


@dataclass(frozen=True, slots=True)
class SequenceRows:
    """The rows of a pass: tokens, positions, and the part of the pass that they are.

    ``outputs`` has the places of the rows whose outputs predict each gap's slots; none for gaps that are not asked for.
    """

    ids: list[int]
    positions: list[int]
    part: PassPart
    outputs: list[list[int]]


class ContextTokens:
    """The ``texts`` between the gaps, with an arena for their keys and values."""

    def __init__(self, model: LoadedDiffusion, texts: Sequence[Sequence[int]]) -> None:
        self._how, self._texts = model.how, texts
        self._arena = Arena(model.config, model.device, model.cache_dtype)
        self._starts: list[int] = []  # the positions of the texts at the last pass
        self._age = 0

    def rows(self, slots: Sequence[Sequence[int]], gaps: Collection[int]) -> SequenceRows:
        """The rows of the next pass, with these tokens in the slots; ``gaps`` are those whose slots are predicted.

        Now and then, and where texts have moved, it reads everything; else the slots and what is near them.
        """
        tokens: list[int] = []
        still: list[int] = []
        moving: list[int] = []
        starts, spans = [], []
        for index, text in enumerate(self._texts):
            starts.append(len(tokens))
            first, end = NEAR if index else 0, len(text) - (NEAR if index < len(self._texts) - 1 else 0)
            for place in range(len(text)):
                (still if first <= place < end else moving).append(len(tokens) + place)
            tokens += text
            if index < len(slots):
                spans.append(range(len(tokens), len(tokens) + len(slots[index])))
                moving += spans[-1]
                tokens += slots[index]
        whole = self._age >= self._how.refresh or starts != self._starts
        self._starts, self._age = starts, 1 if whole else self._age + 1
        self._arena.reserve(len(tokens))
        self._arena.tail = 0 if whole else len(still)
        read = [*still, *moving] if whole else moving
        row_of = {place: row for row, place in enumerate(read)}
        # Without a token before it, the first slot predicts itself.
        outputs = [
            [row_of.get(place - self._how.shift, row_of[place]) for place in (span if gap in gaps else ())]
            for gap, span in enumerate(spans)
        ]
        return SequenceRows([tokens[place] for place in read], read, PassPart(len(read), self._arena), outputs)


class DiffusionReader(Reader, Generic[S]):
    """What readers of diffusion models share: the slots of each fill, and one pass for several candidates."""

    def __init__(self, model: LoadedDiffusion, layout: Layout, options: DecodeOptions) -> None:
        self.passes = 0
        self._model, self._layout = model, layout
        self._eog_id = model.tokenizer.eog_id
        self._fences = layout.answering.fences if layout.answering is not None else frozenset[int]()
        self._rules = FillRules.of(model.how, options, answers=layout.answering is not None)
        self._generator = np.random.default_rng(options.seed % 2**64)  # no negative ones
        self._slots: dict[Key, S] = {}

    def slots(self, fill: Fill) -> S:
        """The slots of a fill as they are guessed now."""
        return self._slots[fill.key]

    def _read(self, parts: Sequence[SequenceRows]) -> list[list[Tensor]]:
        """One pass over several parts, if there are any; of each the logits [n, V] for every run of its outputs."""
        if not parts:
            return []
        model, device = self._model.transformer, self._model.device
        ids = torch.tensor([[token for part in parts for token in part.ids]], device=device)
        positions = torch.tensor([place for part in parts for place in part.positions], device=device)
        hidden = model.hidden(model.embed(ids), positions, [part.part for part in parts])[0]
        self.passes += 1
        empty, first = hidden.new_empty((0, self._model.config.vocab_size)), 0
        found = []
        for part in parts:
            rows = ([first + place for place in places] for places in part.outputs)
            found.append([model.head(hidden[places]) if places else empty for places in rows])
            first += len(part.ids)
        return found

    def _end_of(self, slots: Slots, ends: Collection[int] = ()) -> int | None:
        """The first slot that ends a fill: one of the ``ends``, or a line's fence, that has no mask before it."""
        before = b"\n"
        for slot, token in enumerate(slots.tokens):
            if token is None:
                return None
            if token in ends or (token in self._fences and before.endswith(b"\n")):
                return slot
            before = self._model.tokenizer.token_bytes(token)
        return None

    def _known(self, fill: Fill) -> tuple[list[int], bool]:
        """The tokens that a fill has and begins with, and whether it ends there."""
        tokens = [*fill.tokens, *fill.begun]
        ended = self._eog_id in tokens
        return (tokens[: tokens.index(self._eog_id)] if ended else tokens), ended

    def drafted(self, fill: Fill) -> list[Drafted]:
        """The guess so far, masks as the last pass has seen them."""
        slots = self._slots.get(fill.key)
        return [] if slots is None or slots.offered else slots.drafted(len(fill.tokens))


class FullReader(DiffusionReader[Guess]):
    """Reads one request's fills in passes over the whole text, or over the slots alone."""

    def __init__(self, model: LoadedDiffusion, layout: Layout, options: DecodeOptions) -> None:
        super().__init__(model, layout, options)
        how = model.how
        begin = [] if how.begin_id is None else [how.begin_id]
        end = [] if how.end_id is None else [how.end_id]
        after = [] if layout.answering is None else [layout.answering.after]
        first, *others = layout.segments
        self._texts = [[*begin, *layout.opening, *first, *after], *map(list, others[:-1]), [*others[-1], *end]]
        self._sequences: dict[int, ContextTokens] = {}

    @torch.inference_mode()
    def read(self, fills: Sequence[Fill]) -> list[Run | None]:
        """The whole guesses after one more pass, which all candidates share; until all of a candidate are, it waits."""
        for fill in fills:
            guess = self._slots.get(fill.key)
            if fill.is_open and (guess is None or guess.offered):  # the constraint has taken a part of the last one
                tokens, ended = self._known(fill)
                self._slots[fill.key] = Guess(self._rules, fill.most, tokens, least=fill.least, ended=ended)
        by_candidate = [list(group) for _, group in groupby(fills, lambda fill: fill.candidate)]
        going_on = [group for group in by_candidate if any(map(self._goes_on, group))]
        for group, logits in zip(going_on, self._read(list(map(self._rows, going_on))), strict=True):
            for fill, rows in zip(group, logits, strict=True):
                if self._goes_on(fill):
                    self._take(self._slots[fill.key], rows)
        return [
            self._offered(fill) if fill.is_open and not any(map(self._goes_on, group)) else None
            for group in by_candidate
            for fill in group
        ]

    def _goes_on(self, fill: Fill) -> bool:
        return fill.is_open and not self._slots[fill.key].is_whole

    def _rows(self, group: Sequence[Fill]) -> SequenceRows:
        """The rows of a candidate's text, masks included."""
        mask, candidate = self._model.how.mask_id, group[0].candidate
        if candidate not in self._sequences:
            self._sequences[candidate] = ContextTokens(self._model, self._texts)
        slots = [
            [mask if token is None else token for token in self._slots[fill.key].tokens]
            if fill.is_open
            else fill.tokens
            for fill in group
        ]
        asked = [gap for gap, fill in enumerate(group) if self._goes_on(fill)]
        return self._sequences[candidate].rows(slots, asked)

    def _take(self, guess: Guess, logits: Tensor) -> None:
        """Let a guess go on with the outputs of a pass."""
        seen = self._model.seen(logits, guess.allowed, len(guess.known), self._rules.temperature)
        guess.take(seen, self._generator)
        if guess.is_whole and (end := self._end_of(guess)) is not None:
            del guess.rows[end:]

    def _offered(self, fill: Fill) -> Run:
        """A whole guess, behind the tokens of its fill."""
        guess = self._slots[fill.key]
        guess.offered = True
        return guess.run(len(fill.tokens), fill.most, self._eog_id)


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
