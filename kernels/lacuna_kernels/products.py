"""Products of few rows whose sums are kept in float32, in the form that is fastest on the device."""

import torch
from torch import Tensor

from lacuna_kernels import gpu, reference

# Where no kernel runs, so many outputs of a weight are widened to float32 at a time.
WIDENED = 16_384


def product(x: Tensor, weight: Tensor, scale: Tensor | None = None) -> Tensor:
    """The product of ``x`` [R, K] with ``weight`` [N, K] in pieces [S, R, N], float32: their sum over S.

    ``scale`` [N], float32, multiplies the outputs of a weight in 8-bit codes. R is at most :data:`MAX_ROWS`. On a GPU
    a row's result does not depend on the number of rows.
    """
    if gpu.takes(x, weight):
        from lacuna_kernels.gpu.product import product as fused

        return fused(x, weight, scale)
    parts = torch.split(weight, WIDENED)
    scales = [None] * len(parts) if scale is None else torch.split(scale, WIDENED)
    return torch.cat([reference.product(x, *part) for part in zip(parts, scales, strict=True)], dim=-1)[None]
