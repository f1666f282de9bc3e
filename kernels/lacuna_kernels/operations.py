"""RMSNorm, rotary, products of few rows, and unmask: each in the form that is fastest on the device."""

import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_kernels import gpu, reference

# Where no kernel runs, so many outputs of a weight are widened to float32 at a time.
WIDENED = 16_384
BLOCK = 128


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As :func:`lacuna_kernels.reference.rms_norm`."""
    if gpu.takes(x, weight):
        from lacuna_kernels.gpu.elementwise import rms_norm as fused

        return fused(x, weight, eps)
    return reference.rms_norm(x, weight, eps)


def add_rms_norm(x: Tensor, update: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """As :func:`lacuna_kernels.reference.add_rms_norm`."""
    if gpu.takes(x, update, weight):
        from lacuna_kernels.gpu.elementwise import add_rms_norm as fused

        return fused(x, update, weight, eps)
    return reference.add_rms_norm(x, update, weight, eps)


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As :func:`lacuna_kernels.reference.rotary`."""
    if gpu.takes(x):
        from lacuna_kernels.gpu.elementwise import rotary as fused

        return fused(x, cos, sin)
    return reference.rotary(x, cos, sin)


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


def unmask(logits: Tensor, num_candidates: int) -> tuple[Tensor, Tensor]:
    """Top candidates [R, C] of every row of ``logits`` [R, V], and their log-probabilities [R, C].

    The same as :func:`lacuna_kernels.reference.unmask`. The vocabulary is cut into blocks: the best C tokens are in the
    C blocks with the best maxima, so the others are read for their maximum only.
    """
    if gpu.takes(logits):
        from lacuna_kernels.gpu.unmask import unmask as fused

        return fused(logits, num_candidates)
    logits = logits.float()
    blocks = _blocks(logits)
    chosen = blocks.amax(-1).topk(min(num_candidates, blocks.shape[1]), dim=-1).indices
    best, places = blocks.gather(1, chosen[..., None].expand(-1, -1, BLOCK)).flatten(1).topk(num_candidates, dim=-1)
    ids = chosen.gather(1, places // BLOCK) * BLOCK + places % BLOCK
    total = best[:, :1] - logits.softmax(-1).gather(1, ids[:, :1]).log()
    return ids, best - total


def likeliest(logits: Tensor) -> Tensor:
    """The first of the best tokens [R] of every row of ``logits`` [R, V].

    On a CPU torch finds a maximum eight times as fast as its place.
    """
    if gpu.reads(logits):
        return logits.argmax(-1)
    blocks = _blocks(logits)
    chosen = blocks.amax(-1).argmax(-1, keepdim=True)
    within = blocks.gather(1, chosen[..., None].expand(-1, -1, BLOCK)).squeeze(1)
    return chosen[:, 0] * BLOCK + within.argmax(-1)


def _blocks(logits: Tensor) -> Tensor:
    """The rows in blocks of tokens [R, n, BLOCK]."""
    missing = -logits.shape[1] % BLOCK
    whole = F.pad(logits, (0, missing), value=float("-inf")) if missing else logits
    return whole.view(len(whole), -1, BLOCK)
