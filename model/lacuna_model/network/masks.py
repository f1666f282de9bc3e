"""Additions to some rows of a pass, and mask rows.

Mask rows are slots behind the last token that one pass predicts together (PARD, arXiv 2504.18583).

Mask row j behind a token at position t has a trained embedding as its input and the position t + j. It attends to all
tokens up to t, to the mask rows before it and to itself, and predicts the token at t + j + 1. Every linear has a
trained addition of low rank, for rows of one kind alone (gated LoRA, arXiv 2507.11851): what a pass makes of other rows
is the same with these behind them and without. Mask rows are one kind; rows of tokens may be of others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from lacuna_kernels.native import AddedRows
from lacuna_model.network.linear import Linear

MASKS, EDIT, INFILL = "masks", "edit", "infill"
# What the rows of a kind have added, for every layer by the names of its linears.
LayerAdditions = Sequence[Mapping[str, "Pair"]]


@dataclass(frozen=True, slots=True)
class Pair:
    """What rows of a kind have added to a linear."""

    low: Linear
    high: Linear

    def __call__(self, x: Tensor) -> Tensor:
        """``x`` [..., in] -> [..., out]."""
        return self.high(self.low(x))


@dataclass(frozen=True, slots=True)
class MaskRows:
    """The trained parts of mask rows: their inputs ``embeddings`` [n, H], and for every layer the additions by name.

    Where they see ``both_ways``, each attends to the mask rows behind it, too.
    """

    embeddings: Tensor
    layers: Sequence[Mapping[str, Pair]]
    both_ways: bool = False

    @property
    def most(self) -> int:
        """How many mask rows may follow a token."""
        return len(self.embeddings)

    def inputs(self, x: Tensor, ids: Tensor) -> Tensor:
        """The inputs of rows ``ids`` [..., R], of which -j is mask row j; ``x`` [..., R, H] are those of tokens."""
        own = self.embeddings[(-1 - ids).clamp(min=0)].to(x.dtype)
        return torch.where(ids[..., None] < 0, own, x)


@dataclass(frozen=True, slots=True)
class WithAdditions:
    """A linear whose rows [B, R, in] have additions: those of each of the spans the one of its kind."""

    linear: Linear
    pairs: Sequence[Pair]
    spans: Sequence[AddedRows]

    def __call__(self, x: Tensor) -> Tensor:
        """``x`` [B, R, in] -> [B, R, out]."""
        y = self.linear(x)
        for span in self.spans:
            rows = slice(span.first, span.first + span.rows)
            y[:, rows] += self.pairs[span.kind](x[:, rows])
        return y


def spans_of(ids: Sequence[int], kinds: Sequence[str], known: Sequence[str]) -> list[AddedRows]:
    """The neighbouring rows of one kind: those of masks, which are negative ``ids``, and of tokens as ``kinds`` say.

    A kind is counted as in ``known``; rows of the kind "" have no addition. Raises ValueError for an unknown kind.
    """
    found, first = list[AddedRows](), 0
    named = (MASKS if token < 0 else kind for token, kind in zip(ids, kinds, strict=True))
    for kind, rows in groupby(named):
        count = len(list(rows))
        if kind and kind not in known:
            raise ValueError(f"the model has no additions for rows of the kind {kind!r}")
        if kind:
            found.append(AddedRows(first, count, known.index(kind)))
        first += count
    return found
