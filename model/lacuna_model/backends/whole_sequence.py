"""Reads canvases with a bidirectional model, which reads the whole sequence again in every pass.

Such a checkpoint (Dream, LLaDA) has no exact cache, since every context token attends to the slots. The sequence is the
text between the gaps with each canvas in its place, and masks in open slots.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from lacuna_model.core.context import Layout, UpdateCounts
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.decode.open_slots import restrict, summary
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.transformer import NoStore, Transformer
from lacuna_model.tokens.prefixes import PrefixTable
from lacuna_model.tokens.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class LoadedCheckpoint:
    """A model that reads whole sequences, ready to run; ``dtype`` is that of attention."""

    name: str
    config: ModelConfig
    tokenizer: Tokenizer
    transformer: Transformer
    prefixes: PrefixTable
    dtype: torch.dtype


class NoCache:
    """The cache of a model that keeps nothing, since every pass reads the whole context."""

    num_bytes = 0

    def updating(self, layout: Layout, *, ahead: bool = False) -> Generator[None, None, UpdateCounts]:
        """Count the context's tokens, without a pause."""
        yield from ()
        total = len(layout.opening) + sum(map(len, layout.segments))
        return UpdateCounts(total=total, encoded=total)


class WholeSequenceModel:
    """Reads one request's canvases with passes over the whole text."""

    def __init__(self, model: LoadedCheckpoint, layout: Layout) -> None:
        self.passes = 0
        self._model = model
        self._eog_id = model.tokenizer.eog_id
        self._before = [*layout.opening, *layout.segments[0]]
        self._after = layout.segments[1:]

    def announce(self, canvases: Sequence[Canvas]) -> None:
        """Do nothing: requests that read the whole text do not share passes."""

    def withdraw(self) -> None:
        """Do nothing, since nothing was announced."""

    @torch.inference_mode()
    def read(self, canvases: Sequence[Canvas]) -> list[Marginals | None]:
        """Marginals of every open canvas, from one pass for each candidate."""
        found: list[Marginals | None] = []
        for _, group in groupby(canvases, lambda canvas: canvas.candidate):
            own = list(group)
            if all(canvas.closed for canvas in own):
                found += [None] * len(own)
                continue
            blocks = self._logits([canvas.done for canvas in own], [canvas.slots for canvas in own])
            found += [
                None if canvas.closed else self._marginals(canvas, logits)
                for canvas, logits in zip(own, blocks, strict=True)
            ]
        return found

    def _marginals(self, canvas: Canvas, logits: Tensor) -> Marginals:
        rows = restrict(canvas, logits, self._model.prefixes, self._eog_id).log_softmax(-1)
        seen = summary(rows, self._eog_id)
        return Marginals(seen.ids, seen.logp, seen.entropy, anywhere=True)

    def finish_block(self, canvases: Sequence[Canvas]) -> None:
        """Do nothing: the next pass reads the tokens of all blocks."""

    @torch.inference_mode()
    def likelihood(self, fills: Sequence[Sequence[int]]) -> float:
        """Score fills with a pseudo-likelihood: one pass over masks only, in the lengths of the fills."""
        blocks = self._logits([()] * len(fills), [[None] * len(fill) for fill in fills])
        said = [
            float(logits.log_softmax(-1)[torch.arange(len(fill)), torch.tensor(fill)].sum())
            for logits, fill in zip(blocks, fills, strict=True)
            if fill
        ]
        length = max(sum(map(len, fills)), 1)
        return float(sum(said) / length**0.5)

    def _logits(self, done: Sequence[Sequence[int]], slots: Sequence[Sequence[int | None]]) -> list[Tensor]:
        """Logits [B, V] of every gap's slots, in one pass over the text with these blocks in its gaps."""
        model, config = self._model.transformer, self._model.config
        assert config.mask_id is not None
        ids = [*self._before]
        places: list[range] = []
        for finished, block, text in zip(done, slots, self._after, strict=True):
            ids += finished
            # with shift the output at a place predicts the next one
            places.append(range(len(ids) - config.shift, len(ids) - config.shift + len(block)))
            ids += [config.mask_id if token is None else token for token in block]
            ids += text
        ids.append(self._eog_id)  # in training every text ended with it
        device = model.final_norm.device
        x = model.embed(torch.tensor([ids], device=device))
        hidden = model.hidden(x, torch.arange(len(ids), device=device), NoStore(self._model.dtype))
        self.passes += 1
        rows = torch.tensor(list(_joined(places)), dtype=torch.long, device=device)
        return list(model.head(hidden[0, rows]).split_with_sizes([len(place) for place in places]))


def _joined(places: Iterable[range]) -> Iterable[int]:
    return (place for one in places for place in one)
