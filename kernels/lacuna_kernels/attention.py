"""Attention over context and canvas, by the fastest form the device has."""

import torch.nn.functional as F
from torch import Tensor


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """``softmax(Q K^T / sqrt(D)) V``; shapes as in :func:`lacuna_kernels.reference.attention`.

    Query heads that share a key head are laid side by side as rows, so that each key is read once.
    """
    batch, heads, rows, width = query.shape
    groups = key.shape[1]
    folded = query.reshape(batch, groups, heads // groups * rows, width)
    if mask is not None:
        mask = mask.tile((heads // groups, 1))
    out = F.scaled_dot_product_attention(folded, key, value, attn_mask=mask)
    return out.reshape(batch, heads, rows, width)
