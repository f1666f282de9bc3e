"""Weights in 4 bit, as GGUF's Q4_K has them: what the kernels in C pack, and what they are in plain torch."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

# Inputs of an output that share a step and a lift, and those that share a scale and a minimum.
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
        """The same with its outputs in another order, or some of them."""
        return FourBitWeight(*(change(part) for part in self))


def stacked(weights: Sequence[FourBitWeight]) -> FourBitWeight:
    """Weights of the same inputs as one."""
    return FourBitWeight(*(torch.cat(parts) for parts in zip(*weights, strict=True)))
