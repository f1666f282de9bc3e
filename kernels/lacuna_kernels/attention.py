"""Attention over context and canvas, by the fastest form the device has.

Query heads that share a key head are laid side by side as rows, so that each key is read once. A mask is brought into
that form once a pass (``fold_mask``), not once a layer.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

# Up to so many folded rows ``K Q^T`` is the faster product on a CPU, beyond them ``Q K^T``.
NARROW_ROWS = 128


def attention_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where the device multiplies it fast: a GPU, or a CPU with AVX-512 BF16; else float32."""
    fast = device.type == "cuda" or torch.cpu.get_capabilities().get("avx512_bf16", False)
    return torch.bfloat16 if fast else torch.float32


def fold_mask(mask: Tensor, repeats: int, dtype: torch.dtype) -> Tensor:
    """A bool mask [.., R, K], True where a row may look, as what is added to the scores of folded rows.

    Returns [.., repeats * R, K], 0 or -inf, for ``repeats`` query heads to a key head.
    """
    added = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, float("-inf"))
    return added.tile((repeats, 1))


def attention(query: Tensor, key: Tensor, value: Tensor, folded_mask: Tensor | None = None) -> Tensor:
    """``softmax(Q K^T / sqrt(D) + M) V`` with grouped key/value heads.

    Shapes as in :func:`lacuna_kernels.reference.attention`, but for the mask, which is of :func:`fold_mask`'s form.
    """
    batch, heads, rows, width = query.shape
    groups = key.shape[1]
    folded = query.reshape(batch, groups, heads // groups * rows, width)
    if batch == 1 and query.dtype is torch.bfloat16 and query.device.type == "cpu":
        mask = None if folded_mask is None else folded_mask.reshape(folded_mask.shape[-2:])
        out = _by_products(folded[0], key[0], value[0], mask)
    else:
        out = F.scaled_dot_product_attention(folded, key, value, attn_mask=folded_mask)
    return out.reshape(batch, heads, rows, width)


def _by_products(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Attention [G, R, D] as two batched products.

    On a CPU with bfloat16 instructions this takes two thirds of the time of torch's fused kernel, which converts to
    float32 as it goes (measured over 1,050 keys).
    """
    query = query * query.shape[-1] ** -0.5
    if query.shape[1] <= NARROW_ROWS:
        queries = query.transpose(1, 2)
        scores = torch.bmm(key, queries) if mask is None else torch.baddbmm(mask.t(), key, queries)
        scores = scores.transpose(1, 2)
    else:
        keys = key.transpose(1, 2)
        scores = torch.bmm(query, keys) if mask is None else torch.baddbmm(mask, query, keys)
    return torch.bmm(scores.softmax(-1), value)
