"""Reads canvases with a model whose tokens all attend to each other: Dream, LLaDA and others of their kind."""

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from lacuna_model.core.context import Layout
from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.canvas import Canvas, Key, Marginals
from lacuna_model.decode.reader import Drafted
from lacuna_model.diffusion.guess import Guess
from lacuna_model.diffusion.model import LoadedDiffusion
from lacuna_model.diffusion.rules import FillRules
from lacuna_model.diffusion.sequence import ContextTokens, SequenceRows
from lacuna_model.diffusion.slots import Slots

S = TypeVar("S", bound=Slots)


class DiffusionReader(Generic[S]):
    """What readers of diffusion models share: the slots of each canvas, and one pass for several candidates."""

    def __init__(self, model: LoadedDiffusion, layout: Layout, options: DecodeOptions) -> None:
        self.passes = 0
        self._model, self._layout = model, layout
        self._eog_id = model.tokenizer.eog_id
        self._rules = FillRules.of(model.how, options, answers=layout.answering is not None)
        self._generator = np.random.default_rng(options.seed % 2**64)  # no negative ones
        self._slots: dict[Key, S] = {}
        self._changed = 0

    @property
    def corrections(self) -> int:
        """How many filled slots were changed so far."""
        return self._changed + sum(slots.changed for slots in self._slots.values())

    def tokens(self, canvas: Canvas) -> list[int | None]:
        """The slots of a canvas as they are guessed now, None where one is a mask."""
        return list(self._slots[canvas.key].tokens)

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

    def announce(self, canvases: Sequence[Canvas]) -> None:
        """Do nothing: requests do not share passes."""

    def withdraw(self) -> None:
        """Do nothing, since nothing was announced."""

    def drafted(self, canvas: Canvas) -> list[Drafted]:
        """Nothing: no pass verifies a draft."""
        return []

    def finish_block(self, canvases: Sequence[Canvas]) -> None:
        """Do nothing: a canvas has one block."""


def proved(canvas: Canvas, eog_id: int) -> tuple[list[int | None], bool]:
    """The tokens that a canvas has or begins with, None in the holes between them, and whether the fill ends there."""
    known: list[int | None] = [*canvas.done, *canvas.slots]
    for place, token in enumerate(canvas.begin[: len(known)]):
        known[place] = token if known[place] is None else known[place]
    if ended := eog_id in known:
        return known[: known.index(eog_id)], ended
    last = max((place for place, token in enumerate(known) if token is not None), default=-1)
    return known[: last + 1], False


class FullReader(DiffusionReader[Guess]):
    """Reads one request's canvases in passes over the whole text, or over the slots alone."""

    def __init__(self, model: LoadedDiffusion, layout: Layout, options: DecodeOptions) -> None:
        super().__init__(model, layout, options)
        how = model.how
        begin = [] if how.begin_id is None else [how.begin_id]
        end = [] if how.end_id is None else [how.end_id]
        after = [] if layout.answering is None else [layout.answering.after]
        first, *others = layout.segments
        self._texts = [[*begin, *layout.opening, *first, *after], *map(list, others[:-1]), [*others[-1], *end]]
        self._sequences: dict[int, ContextTokens] = {}

    def guess(self, canvas: Canvas) -> Guess:
        """The guess of a canvas, a new one where the constraint has left a part of the last one."""
        guess = self._slots.get(canvas.key)
        if guess is None or guess.offered:
            self._changed += guess.changed if guess is not None else 0
            known, ended = proved(canvas, self._eog_id)
            guess = Guess(self._rules, canvas.room + len(canvas.done), known, least=canvas.least, ended=ended)
            self._slots[canvas.key] = guess
        return guess

    def _allowed(self, guess: Guess) -> tuple[int, ...]:
        """The special tokens that a guess may have."""
        deletes = self._rules.deletes
        return tuple(
            token for token in self._rules.marks if (guess.may_delete if token in deletes else guess.may_expand)
        )

    @torch.inference_mode()
    def read(self, canvases: Sequence[Canvas]) -> list[Marginals | None]:
        """The guesses of all open canvases after one more pass, which all candidates share."""
        for canvas in canvases:
            if not canvas.closed:
                self.guess(canvas)
        by_candidate = [list(group) for _, group in groupby(canvases, lambda canvas: canvas.candidate)]
        going_on = [group for group in by_candidate if any(self._is_open(canvas) for canvas in group)]
        seen: dict[tuple[int, int], Marginals] = {}
        for group, logits in zip(going_on, self._pass(going_on) if going_on else (), strict=True):
            for canvas, rows in zip(group, logits, strict=True):
                if self._is_open(canvas):
                    seen[canvas.key] = self._take(canvas, rows)
        whole = {canvas.key for group in by_candidate if not any(map(self._is_open, group)) for canvas in group}
        return [self._marginals(canvas, seen.get(canvas.key), canvas.key in whole) for canvas in canvases]

    def _is_open(self, canvas: Canvas) -> bool:
        return not canvas.closed and not self._slots[canvas.key].is_whole

    def _take(self, canvas: Canvas, logits: Tensor) -> Marginals:
        """Let a guess go on with the outputs of a pass."""
        guess = self._slots[canvas.key]
        prefix = self._model.prefixes.due(canvas.gap.prefix, canvas.done)
        seen = self._model.seen(logits, self._allowed(guess), guess.fixed, self._rules.sampling, prefix)
        guess.take(seen, self._generator)
        if guess.is_whole and self._layout.answering is not None:
            self._end_at_fence(guess, self._layout.answering.fences)
        return seen

    def _end_at_fence(self, guess: Guess, fences: Collection[int]) -> None:
        """End an answer at the first line that closes the block of code in which it stands."""
        before = b"\n"
        for slot, token in enumerate(guess.tokens):
            if token in fences and before.endswith(b"\n"):
                guess.keep(range(slot))
                return
            before = b"" if token is None else self._model.tokenizer.token_bytes(token)

    def _marginals(self, canvas: Canvas, seen: Marginals | None, whole: bool) -> Marginals | None:
        """The marginals of a canvas; all gaps of a candidate wait until its guesses are ``whole``."""
        if canvas.closed:
            return None
        guess = self._slots[canvas.key]
        guess.offered = whole

        def row(slot: int) -> Marginals | None:
            return seen.part(slot, slot + 1) if seen is not None and slot < len(seen.ids) else None

        return guess.marginals(row, len(canvas.slots), whole=whole, end=self._eog_id)

    def _text(self, canvas: Canvas) -> list[int]:
        """The tokens in the slots of a gap, masks included."""
        if canvas.closed:
            return canvas.tokens()
        mask = self._model.how.mask_id
        return [mask if token is None else token for token in self._slots[canvas.key].tokens]

    def _pass(self, groups: Sequence[Sequence[Canvas]]) -> list[list[Tensor]]:
        """Logits [n, V] of every gap's n slots, for the gaps of several candidates, in one pass."""
        how = self._model.how
        slots = [[self._text(canvas) for canvas in group] for group in groups]
        for group in groups:
            if group[0].candidate not in self._sequences:
                self._sequences[group[0].candidate] = self._sequence(how.refresh)
        asked = [[gap for gap, canvas in enumerate(group) if self._is_open(canvas)] for group in groups]
        sequences = (self._sequences[group[0].candidate] for group in groups)
        return self._read([one.rows(own, gaps) for one, own, gaps in zip(sequences, slots, asked, strict=True)])

    def _sequence(self, refresh: int) -> ContextTokens:
        model = self._model
        return ContextTokens(model.transformer, model.cache_dtype, self._texts, shift=model.how.shift, refresh=refresh)

    @torch.inference_mode()
    def likelihood(self, fills: Sequence[Sequence[int]]) -> float:
        """Score fills with a pseudo-likelihood: one pass over masks only, in the lengths of the fills."""
        masks = [[self._model.how.mask_id] * len(fill) for fill in fills]
        (gaps,) = self._read([self._sequence(1).rows(masks, range(len(masks)))])
        said = [
            float(logits.log_softmax(-1)[torch.arange(len(fill)), torch.tensor(fill)].sum())
            for logits, fill in zip(gaps, fills, strict=True)
            if fill
        ]
        return float(sum(said) / max(sum(map(len, fills)), 1) ** 0.5)
