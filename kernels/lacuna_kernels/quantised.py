"""Rows in 8 bit, and weights in 4 bit as in GGUF's Q4_K: the input of the packing in C, and a plain reference."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

# The largest code, and the least that the largest number of a row counts as.
MOST, LEAST = 127, 1e-30


def packed(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Codes int8 [.., D] and scales float32 [..] of ``rows`` [.., D]; a number is its code times the scale."""
    most = rows.float().abs().amax(-1, keepdim=True)
    codes = torch.floor(rows.float() * (MOST / most.clamp(min=LEAST)) + 0.5)
    return codes.to(torch.int8), (most / MOST).squeeze(-1)


def unpacked(codes: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """The rows [.., D]."""
    return (codes.float() * scales[..., None]).to(dtype)


# Inputs of an output that share a step and a lift (BLOCK), and those that share a scale and a minimum (GROUP).
BLOCK, GROUP = 256, 32
LARGEST_CODE, LARGEST_FACTOR = 15, 63
# Shares of a group's range that :func:`quantized` tries.
RANGES = (1.0, 0.93, 0.86, 0.79)


class FourBitWeight(NamedTuple):
    """A weight [out, in]: ``step * scale * code + lift * minimum``.

    ``codes`` [out, in] are from 0 to 15; ``scale`` and ``minimum`` [out, in / GROUP], from 0 to 63, uint8 like them;
    ``step`` and ``lift`` [out, in / BLOCK, rounded up] float32.
    """

    codes: Tensor
    scale: Tensor
    minimum: Tensor
    step: Tensor
    lift: Tensor

    def dense(self) -> Tensor:
        """The weight in float32 [out, in]."""
        scale = (self._by_group(self.step) * self.scale).repeat_interleave(GROUP, 1)
        lifted = (self._by_group(self.lift) * self.minimum).repeat_interleave(GROUP, 1)
        return scale * self.codes + lifted

    def _by_group(self, of_blocks: Tensor) -> Tensor:
        return of_blocks.repeat_interleave(BLOCK // GROUP, 1)[:, : self.scale.shape[1]]

    def by_rows(self, change: Callable[[Tensor], Tensor]) -> "FourBitWeight":
        """The same with ``change`` applied to the rows of each part: its outputs reordered or selected."""
        return FourBitWeight(*(change(part) for part in self))


def stacked(weights: Sequence[FourBitWeight]) -> FourBitWeight:
    """Weights with the same inputs stacked as one."""
    return FourBitWeight(*(torch.cat(parts) for parts in zip(*weights, strict=True)))


def quantized(weight: Tensor) -> FourBitWeight:
    """A weight [out, in] in 4 bit; ``in`` is a multiple of ``2 * GROUP``.

    The range of each group's codes is cut as far as that makes its squared error smaller.
    """
    groups = weight.float().reshape(len(weight), -1, GROUP)
    low, high = groups.amin(-1).clamp_max(0.0), groups.amax(-1).clamp_min(0.0)
    best, least = (low, high), torch.full_like(low, torch.inf)
    for share in RANGES:
        spread = (high - low) * share / LARGEST_CODE
        found = _codes(groups, low * share, spread) * spread[..., None] + (low * share)[..., None]
        error = (found - groups).square().sum(-1)
        better = error < least
        best = (torch.where(better, low * share, best[0]), torch.where(better, high * share, best[1]))
        least = torch.where(better, error, least)
    low, high = best
    step, scale = _factors((high - low) / LARGEST_CODE)
    lift, minimum = _factors(-low)
    blocks = FourBitWeight(torch.empty(0), scale, minimum, step, -lift)
    codes = _codes(groups, blocks._by_group(-lift) * minimum, blocks._by_group(step) * scale)
    return blocks._replace(codes=codes.to(torch.uint8).flatten(1))


def _codes(groups: Tensor, low: Tensor, spread: Tensor) -> Tensor:
    """The nearest codes of groups [out, G, GROUP] that begin at ``low`` with steps of ``spread`` [out, G]."""
    steps = torch.where(spread > 0, 1 / spread, 0.0)[..., None]
    return ((groups - low[..., None]) * steps).round_().clamp_(0, LARGEST_CODE)


def _factors(wanted: Tensor) -> tuple[Tensor, Tensor]:
    """A factor for each block [out, B], and for each group [out, G] its multiple that is nearest to ``wanted``."""
    out, groups = wanted.shape
    whole = torch.zeros((out, -(-groups // (BLOCK // GROUP)) * (BLOCK // GROUP)))
    whole[:, :groups] = wanted
    of_blocks = whole.view(out, -1, BLOCK // GROUP).amax(-1) / LARGEST_FACTOR
    inverse = torch.where(of_blocks > 0, 1 / of_blocks, 0.0).repeat_interleave(BLOCK // GROUP, 1)
    return of_blocks, (whole * inverse).round().to(torch.uint8)[:, :groups].contiguous()
