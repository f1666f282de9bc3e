"""Attention over context and canvas, by the fastest form the device has.

Query heads that share a key head are laid side by side as rows, so that each key is read once. A mask is brought into
that form once a pass (``fold_mask``), not once a layer.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


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
    out = F.scaled_dot_product_attention(
        folded, key, value, attn_mask=None if folded_mask is None else folded_mask.to(query.dtype)
    )
    return out.reshape(batch, heads, rows, width)
