"""Every kernel in plain torch: the reference that the fast forms are tested against."""

import torch
from torch import Tensor


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """``x / sqrt(mean(x^2) + eps) * weight`` over the last dimension, reduced in float32 (arXiv 1910.07467)."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def add_rms_norm(x: Tensor, update: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The sum ``s = x + update`` and its norm, ``rms_norm(s)``."""
    total = x + update
    return total, rms_norm(total, weight, eps)


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding of ``x`` [..., T, D] by ``cos`` and ``sin`` [T, D] (arXiv 2104.09864, half-split).

    ``y = x * cos + [-x2, x1] * sin`` with ``x = [x1, x2]``.
    """
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """``softmax(Q K^T / sqrt(D)) V`` with grouped key/value heads.

    ``query`` [B, H, R, D], ``key`` and ``value`` [B, G, K, D] with H a multiple of G, ``mask`` bool, broadcastable to
    [B, 1, R, K], True where a row attends. Returns [B, H, R, D].
    """
    repeats = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(repeats, dim=1), value.repeat_interleave(repeats, dim=1)
    scores = query.float() @ key.float().transpose(-1, -2) * query.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    mixed: Tensor = scores.softmax(-1) @ value.float()
    return mixed.to(query.dtype)


def unmask(logits: Tensor, num_candidates: int) -> tuple[Tensor, Tensor]:
    """Top candidates of every row of ``logits`` [R, V]: ids [R, C], best first, and log-probabilities [R, C]."""
    logits = logits.float()
    values, ids = logits.topk(num_candidates, dim=-1)
    return ids, values - logits.logsumexp(-1, keepdim=True)


def product(x: Tensor, weight: Tensor, scale: Tensor | None = None) -> Tensor:
    """``x W^T`` [R, N] in float32, of ``x`` [R, K] and ``weight`` [N, K]; ``scale`` [N] multiplies the outputs."""
    found = x.float() @ weight.float().T
    return found if scale is None else found * scale


def addition(x: Tensor, low: Tensor, high: Tensor, gate: Tensor) -> Tensor:
    """``gate * high (low x)`` [R, N] in float32, of ``x`` [R, K], ``low`` [r, K], ``high`` [N, r], ``gate`` [R, 1]."""
    return product(product(x, low), high) * gate.float()


def heads(
    states: Tensor,
    bias: Tensor | None,
    norms: tuple[Tensor, Tensor, float] | None,
    angles: tuple[Tensor, Tensor],
    groups: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Query [R, H, D], key and value [R, G, D] of the rows ``states`` [R, (H + 2 G) D] of a product, in float32.

    ``norms`` are the weights [D] of query and key and their epsilon, ``angles`` the cosines and sines [R, D].
    """
    cos, sin = (part[:, None] for part in angles)
    states = (states if bias is None else states + bias).float().view(len(states), -1, cos.shape[-1])
    query, key, value = states.split_with_sizes((states.shape[1] - 2 * groups, groups, groups), dim=1)
    if norms is not None:
        query_norm, key_norm, eps = norms
        query, key = rms_norm(query, query_norm.float(), eps), rms_norm(key, key_norm.float(), eps)
    return rotary(query, cos, sin), rotary(key, cos, sin), value


def gate(states: Tensor) -> Tensor:
    """``silu(g) * u`` [R, F] in float32, where ``states`` [R, 2 F] hold g, then u."""
    gates, up = states.float().chunk(2, dim=-1)
    return gates * gates.sigmoid() * up
