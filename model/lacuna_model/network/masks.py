"""Mask rows: slots behind the last token that one pass predicts together (PARD, arXiv 2504.18583).

Mask row j behind a token at position t has a trained embedding as its input and the position t + j. It attends to all
tokens up to t, to the mask rows before it and to itself, and predicts the token at t + j + 1. Every linear has a
trained addition of low rank, for mask rows alone (gated LoRA, arXiv 2507.11851): what a pass makes of tokens is the
same with mask rows behind them and without.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lacuna_model.network.linear import Linear


@dataclass(frozen=True, slots=True)
class Pair:
    """What mask rows have added to a linear."""

    low: Linear
    high: Linear

    def __call__(self, x: Tensor) -> Tensor:
        """``x`` [..., in] -> [..., out]."""
        return self.high(self.low(x))


@dataclass(frozen=True, slots=True)
class MaskRows:
    """The trained parts of mask rows: their inputs ``embeddings`` [n, H], and for every layer the additions by name."""

    embeddings: Tensor
    layers: Sequence[Mapping[str, Pair]]

    @property
    def most(self) -> int:
        """How many mask rows may follow a token."""
        return len(self.embeddings)

    def inputs(self, x: Tensor, ids: Tensor) -> Tensor:
        """The inputs of rows ``ids`` [..., R], of which -j is mask row j; ``x`` [..., R, H] are those of tokens."""
        own = self.embeddings[(-1 - ids).clamp(min=0)].to(x.dtype)
        return torch.where(ids[..., None] < 0, own, x)


@dataclass(frozen=True, slots=True)
class WithAddition:
    """A linear whose last ``gated`` rows [B, R, in] have an addition."""

    linear: Linear
    pair: Pair
    gated: int

    def __call__(self, x: Tensor) -> Tensor:
        """``x`` [B, R, in] -> [B, R, out]."""
        y = self.linear(x)
        y[:, -self.gated :] += self.pair(x[:, -self.gated :])
        return y
