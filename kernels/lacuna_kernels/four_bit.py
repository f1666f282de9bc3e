"""Weights in 4 bit, as in GGUF's Q4_K: the input of the packing in C, and a reference in plain torch."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

# Inputs of an output that share a step and a lift (BLOCK), and those that share a scale and a minimum (GROUP).
BLOCK, GROUP = 256, 32


class FourBitWeight(NamedTuple):
    """A weight [out, in]: ``step * scale * code + lift * minimum``.

    ``codes`` [out, in] are from 0 to 15; ``scale`` and ``minimum`` [out, in / GROUP], from 0 to 63, uint8 like them;
    ``step`` and ``lift`` [out, in / BLOCK] float32.
    """

    codes: Tensor
    scale: Tensor
    minimum: Tensor
    step: Tensor
    lift: Tensor

    def dense(self) -> Tensor:
        """The weight in float32 [out, in]."""
        scale = (self.step.repeat_interleave(BLOCK // GROUP, 1) * self.scale).repeat_interleave(GROUP, 1)
        lifted = (self.lift.repeat_interleave(BLOCK // GROUP, 1) * self.minimum).repeat_interleave(GROUP, 1)
        return scale * self.codes + lifted

    def by_rows(self, change: Callable[[Tensor], Tensor]) -> "FourBitWeight":
        """The same with ``change`` applied to the rows of each part: its outputs reordered or selected."""
        return FourBitWeight(*(change(part) for part in self))


def stacked(weights: Sequence[FourBitWeight]) -> FourBitWeight:
    """Weights with the same inputs stacked as one."""
    return FourBitWeight(*(torch.cat(parts) for parts in zip(*weights, strict=True)))
