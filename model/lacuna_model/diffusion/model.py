"""A whole-sequence model as the engine holds it, and the sequence that it reads."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from lacuna_model.decode.sampling import PrefixTable
from lacuna_model.diffusion.slots import Marginals, Sampling, summary
from lacuna_model.loading.chat import ChatTemplate, read_chat_template
from lacuna_model.loading.families import Diffusion
from lacuna_model.network.arena import Arena, PassPart
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.transformer import Transformer
from lacuna_model.tokenizer import Tokenizer

# Tokens on each side of a gap that every pass reads; of these, the output at the last one before a gap may predict its
# first slot.
NEAR = 4


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
    """The text between the gaps, with an arena for its keys and values.

    ``shift``: the output at a place predicts the next token.
    """

    def __init__(
        self, transformer: Transformer, dtype: torch.dtype, texts: Sequence[Sequence[int]], *, shift: bool, refresh: int
    ) -> None:
        self._transformer, self._dtype = transformer, dtype
        self._texts = [list(text) for text in texts]
        self._shift, self._refresh = shift, refresh
        self._arena: Arena | None = None
        self._starts: list[int] = []  # the positions of the texts at the last pass
        self._age = 0

    def _kept(self, text: int) -> range:
        """The places of a text that only passes over everything read: those that are not near a gap."""
        first = NEAR if text else 0
        end = len(self._texts[text]) - (NEAR if text < len(self._texts) - 1 else 0)
        return range(first, max(first, end))

    def rows(self, slots: Sequence[Sequence[int]], gaps: Collection[int]) -> SequenceRows:
        """The rows of the next pass, with these tokens in the slots; ``gaps`` are those whose slots are predicted."""
        starts: list[int] = []
        still: list[tuple[int, int]] = []
        moving: list[tuple[int, int]] = []
        outputs: list[list[int]] = []
        place = 0
        row_of: dict[int, int] = {}
        for index, text in enumerate(self._texts):
            starts.append(place)
            kept = self._kept(index)
            for at, token in enumerate(text):
                if at in kept:
                    still.append((token, place + at))
                else:
                    row_of[place + at] = len(moving)
                    moving.append((token, place + at))
            place += len(text)
            if index < len(slots):
                first = place
                for token in slots[index]:
                    row_of[place] = len(moving)
                    moving.append((token, place))
                    place += 1
                asked = range(first, place) if index in gaps else ()
                # Without a token before it, the first slot predicts itself.
                outputs.append([row_of.get(at - self._shift, row_of[at]) for at in asked])
        whole = self._arena is None or self._age >= self._refresh or starts != self._starts
        if self._arena is None:
            self._arena = Arena(self._transformer.config, self._transformer.final_norm.device, self._dtype)
        self._arena.reserve(len(still) + len(moving))
        if whole:
            self._age = 0
            self._arena.tail = 0
            read = [*still, *moving]
        else:
            self._arena.tail = len(still)
            read = moving
        self._starts = starts
        self._age += 1
        offset = len(read) - len(moving)
        outputs = [[offset + row for row in rows] for rows in outputs]
        ids, positions = [token for token, _ in read], [position for _, position in read]
        return SequenceRows(ids, positions, PassPart(len(ids), self._arena), outputs)


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

    def seen(self, logits: Tensor, allowed: tuple[int, ...], fixed: int, sampling: Sampling) -> Marginals:
        """The marginals of a gap's slots, from their ``logits`` [R, V], which are overwritten.

        Special tokens are ruled out, but the ``allowed`` ones after the first ``fixed`` slots.
        """
        ruled = self._specials.expand(len(logits), -1).clone()
        for token in allowed:
            ruled[fixed:, token] = False
        return summary(logits, ruled, sampling)
