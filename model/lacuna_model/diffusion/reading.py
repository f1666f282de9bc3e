"""Whole-sequence models as the engine holds them, and reading fills with those whose tokens all attend to each other.

Such are Dream, LLaDA and others of their kind.
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
from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.fill import Drafted, Fill, Key, Reader
from lacuna_model.decode.sampling import PrefixTable
from lacuna_model.diffusion.guess import FillRules, Guess, Marginals, Slots, summary
from lacuna_model.loading.chat import ChatTemplate, read_chat_template
from lacuna_model.loading.families import Diffusion
from lacuna_model.network.arena import Arena, PassPart
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.transformer import Transformer
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
