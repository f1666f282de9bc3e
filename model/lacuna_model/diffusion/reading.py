"""Reads fills with a model whose tokens all attend to each other: Dream, LLaDA and others of their kind."""

from collections.abc import Collection, Generator, Iterable, Sequence
from itertools import groupby
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from lacuna_model.core.constraint import Run
from lacuna_model.core.context import Layout
from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.fill import Drafted, Fill, Key
from lacuna_model.diffusion.guess import FillRules, Guess
from lacuna_model.diffusion.model import ContextTokens, LoadedDiffusion, SequenceRows
from lacuna_model.diffusion.slots import Slots

S = TypeVar("S", bound=Slots)


class DiffusionReader(Generic[S]):
    """What readers of diffusion models share: the slots of each fill, and one pass for several candidates."""

    def __init__(self, model: LoadedDiffusion, layout: Layout, options: DecodeOptions) -> None:
        self.passes = 0
        self._model, self._layout = model, layout
        self._eog_id = model.tokenizer.eog_id
        self._rules = FillRules.of(model.how, options, answers=layout.answering is not None)
        self._generator = np.random.default_rng(options.seed % 2**64)  # no negative ones
        self._slots: dict[Key, S] = {}

    def tokens(self, fill: Fill) -> list[int | None]:
        """The slots of a fill as they are guessed now, None where one is a mask."""
        return list(self._slots[fill.key].tokens)

    def _read(self, parts: Sequence[SequenceRows]) -> list[list[Tensor]]:
        """One pass over several parts; of each the logits [n, V] for every run of its outputs."""
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

    def announcing(self, fills: Sequence[Fill]) -> Generator[None, None, None]:
        """Do nothing: requests do not share passes."""
        yield from ()

    def going_ahead(self, fills: Sequence[Fill], runs: Sequence[Run | None]) -> Iterable[None]:
        """Do nothing: a guess goes on from what the constraint has taken."""
        return ()

    def withdraw(self) -> None:
        """Do nothing, since nothing was announced."""


def known(fill: Fill, eog_id: int) -> tuple[list[int], bool]:
    """The tokens that a fill has and begins with, and whether it ends there."""
    tokens = [*fill.tokens, *fill.begun]
    ended = eog_id in tokens
    return (tokens[: tokens.index(eog_id)] if ended else tokens), ended


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

    def guess(self, fill: Fill) -> Guess:
        """The guess of a fill, a new one where the constraint has taken a part of the last one."""
        guess = self._slots.get(fill.key)
        if guess is None or guess.offered:
            tokens, ended = known(fill, self._eog_id)
            guess = Guess(self._rules, fill.most, tokens, least=fill.least, ended=ended)
            self._slots[fill.key] = guess
        return guess

    def _allowed(self, guess: Guess) -> tuple[int, ...]:
        """The special tokens that a guess may have."""
        deletes = self._rules.deletes
        return tuple(
            token for token in self._rules.marks if (guess.may_delete if token in deletes else guess.may_expand)
        )

    @torch.inference_mode()
    def read(self, fills: Sequence[Fill]) -> list[Run | None]:
        """The whole guesses after one more pass, which all candidates share; until all of a candidate are, it waits."""
        for fill in fills:
            if fill.is_open:
                self.guess(fill)
        by_candidate = [list(group) for _, group in groupby(fills, lambda fill: fill.candidate)]
        going_on = [group for group in by_candidate if any(map(self._goes_on, group))]
        for group, logits in zip(going_on, self._pass(going_on) if going_on else (), strict=True):
            for fill, rows in zip(group, logits, strict=True):
                if self._goes_on(fill):
                    self._take(fill, rows)
        return [
            self._offered(fill) if fill.is_open and not any(map(self._goes_on, group)) else None
            for group in by_candidate
            for fill in group
        ]

    def _goes_on(self, fill: Fill) -> bool:
        return fill.is_open and not self._slots[fill.key].is_whole

    def _take(self, fill: Fill, logits: Tensor) -> None:
        """Let a guess go on with the outputs of a pass."""
        guess = self._slots[fill.key]
        guess.seen = self._model.seen(logits, self._allowed(guess), guess.fixed, self._rules.sampling)
        guess.take(guess.seen, self._generator)
        if guess.is_whole and self._layout.answering is not None:
            self._end_at_fence(guess, self._layout.answering.fences)

    def _offered(self, fill: Fill) -> Run:
        """A whole guess, behind the tokens of its fill."""
        guess = self._slots[fill.key]
        guess.offered = True
        return guess.run(len(fill.tokens), fill.most, self._eog_id)

    def drafted(self, fill: Fill) -> list[Drafted]:
        """The guess so far, masks as the last pass has seen them."""
        guess = self._slots.get(fill.key)
        if guess is None or guess.offered:
            return []
        seen = guess.seen
        return guess.drafted(
            len(fill.tokens), lambda slot: seen.row(slot) if seen is not None and slot < len(seen.ids) else None
        )

    def _end_at_fence(self, guess: Guess, fences: Collection[int]) -> None:
        """End an answer at the first line that closes the block of code in which it stands."""
        before = b"\n"
        for slot, token in enumerate(guess.tokens):
            if token in fences and before.endswith(b"\n"):
                guess.keep(range(slot))
                return
            before = b"" if token is None else self._model.tokenizer.token_bytes(token)

    def _text(self, fill: Fill) -> list[int]:
        """The tokens in the slots of a gap, masks included."""
        if not fill.is_open:
            return fill.tokens
        mask = self._model.how.mask_id
        return [mask if token is None else token for token in self._slots[fill.key].tokens]

    def _pass(self, groups: Sequence[Sequence[Fill]]) -> list[list[Tensor]]:
        """Logits [n, V] of every gap's n slots, for the gaps of several candidates, in one pass."""
        how = self._model.how
        slots = [[self._text(fill) for fill in group] for group in groups]
        for group in groups:
            if group[0].candidate not in self._sequences:
                self._sequences[group[0].candidate] = self._sequence(how.refresh)
        asked = [[gap for gap, fill in enumerate(group) if self._goes_on(fill)] for group in groups]
        sequences = (self._sequences[group[0].candidate] for group in groups)
        return self._read([one.rows(own, gaps) for one, own, gaps in zip(sequences, slots, asked, strict=True)])

    def _sequence(self, refresh: int) -> ContextTokens:
        model = self._model
        return ContextTokens(model.transformer, model.cache_dtype, self._texts, shift=model.how.shift, refresh=refresh)
