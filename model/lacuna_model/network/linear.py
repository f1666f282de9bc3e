"""Linears, and what rows of some kinds have added to them.

Linears are dense, on a GPU in bfloat16 and 8 bit, and in 8 and 4 bit on CPUs with the instructions for them.

Mask rows are slots behind the last token that one pass predicts together (PARD, arXiv 2504.18583). Mask row j behind a
token at position t has a trained embedding as its input and the position t + j. It attends to all tokens up to t, to
the mask rows before it and to itself, and predicts the token at t + j + 1. Every linear has a trained addition of low
rank, for rows of one kind alone (gated LoRA, arXiv 2507.11851): what a pass makes of other rows is the same with these
behind them and without. Mask rows are one kind; rows of tokens may be of others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_kernels import MAX_ROWS, product
from lacuna_kernels.native import AddedRows, NativeKernels
from lacuna_model.network.config import ModelConfig

if TYPE_CHECKING:
    from lacuna_kernels.gpu.product import Addition

Linear = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class DenseLinear:
    """``x W^T (+ b)`` in the weight's own precision; the result has the precision of ``x``."""

    weight: Tensor
    bias: Tensor | None = None

    def dense(self) -> Tensor:
        """The weight [out, in]."""
        return self.weight

    def __call__(self, x: Tensor) -> Tensor:
        """``x`` [..., in] -> [..., out]."""
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias).to(x.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class GpuLinear:
    """``x W^T (+ b)`` on a GPU: a ``weight`` [out, in] in half precision, or 8-bit codes with a ``scale`` per output.

    Few rows are summed in float32, so that a row's result does not depend on the number of rows. One that ``is_exact``
    reads more rows in the same way, a few at a time; others read them at once, with sums rounded to half precision.
    """

    weight: Tensor
    scale: Tensor | None = None
    bias: Tensor | None = None
    is_exact: bool = False

    def pieces(self, x: Tensor) -> Tensor:
        """The product without the bias: ``x`` [R, in], in half precision, -> [S, R, out], to be summed over S."""
        if len(x) <= MAX_ROWS:
            return product(x, self.weight, self.scale)
        if self.is_exact:
            return torch.cat([self.pieces(part) for part in torch.split(x, MAX_ROWS)], dim=1)
        found = F.linear(x, self.weight.to(x.dtype))[None]
        return found if self.scale is None else found * self.scale

    def dense(self) -> Tensor:
        """The weight [out, in], in float32 where it is in codes."""
        return self.weight if self.scale is None else self.weight.float() * self.scale[:, None]

    def addition(self, low: "DenseLinear | GpuLinear", high: "DenseLinear | GpuLinear") -> "Addition":
        """What ``high(low(x))`` adds to it, in the form of its own weight."""
        from lacuna_kernels.gpu.product import Addition

        if self.scale is not None:
            return Addition(*quantize_rows(low.dense().float()), high.dense().bfloat16())
        return Addition(low.dense().to(self.weight.dtype), None, high.dense().to(self.weight.dtype))

    def __call__(self, x: Tensor) -> Tensor:
        """``x`` [..., in] -> [..., out], in the precision of ``x``."""
        narrow = torch.bfloat16 if self.weight.dtype is torch.int8 else self.weight.dtype
        pieces = self.pieces(x.reshape(-1, x.shape[-1]).to(narrow))
        found = pieces[0] if len(pieces) == 1 else pieces.sum(0)
        found = found if self.bias is None else found + self.bias
        return found.view(*x.shape[:-1], -1).to(x.dtype)


def quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """8-bit codes [out, in] of a weight and one scale per row [out]: ``weight ~ codes * scale``."""
    scale = weight.abs().amax(dim=1).clamp_min(1e-8) / 127.0
    return (weight / scale[:, None]).round().to(torch.int8), scale


class NativeLinear:
    """``x W^T (+ b)`` in our own kernel, in 8 bit, with one activation scale per block of a row; or of 4-bit weights.

    ``packed`` is the form that the kernel reads.
    """

    def __init__(
        self,
        kernels: NativeKernels,
        weight: Tensor,
        scale: Tensor,
        bias: Tensor | None = None,
        blocks: Tensor | None = None,
    ) -> None:
        """Take the codes ``weight`` [out, in], plain or packed by these ``kernels`` (uint8).

        ``blocks`` are the first outputs of the linear in 4 bit, packed by these kernels, if there are any.
        """
        packed = weight if weight.dtype is torch.uint8 else kernels.packed(weight)
        self.packed = kernels.bind(packed, scale, bias, blocks)
        self._kernels = kernels

    def __call__(self, x: Tensor) -> Tensor:
        """``x`` [..., in] float32 -> [..., out] float32."""
        return self._kernels.linear(x, self.packed)

    def lookup(self, ids: Tensor) -> Tensor:
        """Rows of the weight: ``ids`` [...] -> [..., in] float32."""
        return self._kernels.lookup(ids, self.packed)


@dataclass(frozen=True, slots=True)
class Layer:
    """One block's parts; the projections of q, k, v and of gate, up are single linears with stacked rows."""

    config: ModelConfig
    attn_norm: Tensor
    qkv: Linear
    output: Linear
    mlp_norm: Tensor
    gate_up: Linear
    down: Linear
    q_norm: Tensor | None = None
    k_norm: Tensor | None = None


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
