"""Attention, RMSNorm, products of few rows, and unmask: each in the form that is fastest on the device.

Query heads that share a key head are folded side by side as rows, so that each key is read once. ``fold_mask`` brings a
mask into that form once per pass, not once per layer.
"""

from collections.abc import Callable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class FoldedMask:
    """A mask for folded rows: ``added`` [.., R, K] is added to the scores, 0 or -inf.

    Every row attends to all keys before ``start``.
    """

    added: Tensor
    start: int


def attention_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where the device multiplies it fast: a GPU, or a CPU with AVX-512 BF16; else float32."""
    fast = gpu.runs_on(device) or torch.cpu.get_capabilities().get("avx512_bf16", False)
    return torch.bfloat16 if fast else torch.float32


def empty_keys(
    shape: tuple[int, ...], device: torch.device, dtype: torch.dtype, zeros: Callable[..., Tensor] = torch.zeros
) -> Tensor:
    """Zeros for keys [.., K, D] in the layout that :func:`attention` reads fastest: by column on a CPU in bfloat16.

    ``zeros`` makes them, with the arguments of :func:`torch.zeros`.
    """
    if not _multiplies(device, dtype):
        return zeros(shape, device=device, dtype=dtype)
    *batch, keys, width = shape
    # An odd number of cache lines per column; with an even one, columns would share a few sets of the cache.
    pitch = (keys + 31) // 32 | 1
    return zeros((*batch, width, pitch * 32), device=device, dtype=dtype)[..., :keys].transpose(-1, -2)


def fold_mask(mask: Tensor, repeats: int, dtype: torch.dtype) -> FoldedMask:
    """Fold a bool mask [.., R, K], True where a row attends, for ``repeats`` query heads per key head."""
    added = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, float("-inf"))
    start = 0
    if _multiplies(mask.device, dtype):
        start = int(mask.flatten(0, -2).all(0).int().cumprod(0).sum())
    return FoldedMask(added.tile((repeats, 1)), start)


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: FoldedMask | None = None, *, causal: bool = False
) -> Tensor:
    """``softmax(Q K^T / sqrt(D) + M) V`` with grouped key/value heads.

    Shapes as in :func:`lacuna_kernels.reference.attention`, except for the mask, which :func:`fold_mask` returns.
    ``causal``, instead of a mask: the rows are the last of the keys, and each attends to those up to its own.
    """
    if mask is None and (flash := _flash(query, key, value)):
        # flash-attn's order is [B, R, H, D], with any strides but the last.
        options = {"causal": True} if causal else {}
        return flash(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), **options).transpose(1, 2)
    if causal:
        from torch.nn.attention.bias import causal_lower_right  # it imports torch's compiler, which takes seconds

        order = causal_lower_right(query.shape[2], key.shape[2])
        return F.scaled_dot_product_attention(query, key, value, attn_mask=order, enable_gqa=True)
    batch, heads, rows, width = query.shape
    groups = key.shape[1]
    folded = query.reshape(batch, groups, heads // groups * rows, width)
    if batch == 1 and _multiplies(query.device, query.dtype):
        out = _by_products(folded[0], key[0], value[0], mask)
    else:
        out = F.scaled_dot_product_attention(folded, key, value, attn_mask=None if mask is None else mask.added)
    return out.reshape(batch, heads, rows, width)


def _flash(query: Tensor, key: Tensor, value: Tensor) -> Callable[..., Tensor] | None:
    """flash-attn's function if it is installed and supports these tensors: half precision, heads of at most 256."""
    if not gpu.reads(query, key, value) or query.shape[-1] > 256:
        return None
    return gpu.flash_attention() if query.dtype in (torch.bfloat16, torch.float16) else None


def _multiplies(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether two batched products are the fastest form."""
    return dtype is torch.bfloat16 and device.type == "cpu"


def _by_products(query: Tensor, key: Tensor, value: Tensor, mask: FoldedMask | None) -> Tensor:
    """Attention [G, R, D] as two batched products.

    On a CPU with bfloat16 instructions this takes half the time of torch's fused kernel, which converts to float32.
    """
    scores = torch.bmm(query * query.shape[-1] ** -0.5, key.transpose(1, 2))
    if mask is not None:
        scores[:, :, mask.start :] += mask.added.view(scores.shape[1:])[:, mask.start :]
    return torch.bmm(scores.softmax(-1), value)
