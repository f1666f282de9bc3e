"""Heads of a layer: from the sums of a product to rotated queries, and keys and values in a store, in one launch.

Plain torch needs the bias, the norms of query and key where a model has them, rotary, and two copies into the store.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from lacuna_kernels import eight_bit
from lacuna_kernels.gpu.placement import NUMBERS, RowPlaces

MOST, LEAST = tl.constexpr(eight_bit.MOST), tl.constexpr(eight_bit.LEAST)


@triton.jit
def half(p_states, p_bias, o_state, o_bias, mask, pieces, stride, BIASED: tl.constexpr, BD: tl.constexpr):
    """One half of a head [BD] in float32: the sum of its pieces, and the bias."""
    b_sum = tl.zeros([BD], tl.float32)
    for i in range(pieces):
        b_sum += tl.load(p_states + i * stride + o_state, mask=mask, other=0.0).to(tl.float32)
    if BIASED:
        b_sum += tl.load(p_bias + o_bias, mask=mask, other=0.0).to(tl.float32)
    return b_sum


@triton.jit(do_not_specialize=["layer", "pieces"])
def heads_kernel(
    p_states, p_bias, p_query_norm, p_key_norm, p_cos, p_sin, p_positions, p_placement, p_query,
    layer, pieces, stride, heads, groups, width, eps,
    BIASED: tl.constexpr, NORMED: tl.constexpr, EIGHT: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """One program per row and head; queries come first, then keys, then values."""
    i_row, i_head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    middle = width // 2
    o_d = tl.arange(0, BD)
    m_d = o_d < middle
    o_bias = i_head * width + o_d
    o_state = i_row * (heads + 2 * groups) * width + o_bias
    # [BD] each
    b_first = half(p_states, p_bias, o_state, o_bias, m_d, pieces, stride, BIASED, BD)
    b_second = half(p_states, p_bias, o_state + middle, o_bias + middle, m_d, pieces, stride, BIASED, BD)
    if i_head < heads + groups:
        if NORMED:
            p_norm = p_query_norm if i_head < heads else p_key_norm
            mean = (tl.sum(b_first * b_first, axis=0) + tl.sum(b_second * b_second, axis=0)) / width
            scale = tl.rsqrt(mean + eps)
            b_first *= scale * tl.load(p_norm + o_d, mask=m_d, other=0.0).to(tl.float32)
            b_second *= scale * tl.load(p_norm + middle + o_d, mask=m_d, other=0.0).to(tl.float32)
        o_angle = tl.load(p_positions + i_row) * width + o_d
        b_cos1 = tl.load(p_cos + o_angle, mask=m_d, other=0.0)
        b_sin1 = tl.load(p_sin + o_angle, mask=m_d, other=0.0)
        b_cos2 = tl.load(p_cos + o_angle + middle, mask=m_d, other=0.0)
        b_sin2 = tl.load(p_sin + o_angle + middle, mask=m_d, other=0.0)
        b_turned = b_first * b_cos1 - b_second * b_sin1
        b_second = b_second * b_cos2 + b_first * b_sin2
        b_first = b_turned
    dtype = p_query.dtype.element_ty
    if i_head < heads:
        p_own = p_query + (i_row * heads + i_head) * width + o_d
        tl.store(p_own, b_first.to(dtype), mask=m_d)
        tl.store(p_own + middle, b_second.to(dtype), mask=m_d)
    else:
        p_place = p_placement + NUMBERS * i_row
        is_value = (i_head >= heads + groups).to(tl.int64)
        group = i_head - heads - is_value * groups
        m_own = o_d < tl.where(tl.load(p_place + 5) > 0, middle, 0)
        base = tl.load(p_place + is_value)
        o_row = layer * tl.load(p_place + 2) + group * tl.load(p_place + 3) + tl.load(p_place + 4) * width
        if EIGHT:
            most = tl.maximum(tl.max(tl.abs(b_first), axis=0), tl.max(tl.abs(b_second), axis=0))
            p_scale = tl.load(p_place + 9 + is_value).to(tl.pointer_type(tl.float32)) + o_row // width
            tl.store(p_scale, most / MOST, mask=tl.load(p_place + 5) > 0)
            share = MOST / tl.maximum(most, LEAST)
            p_codes = base.to(tl.pointer_type(tl.int8)) + o_row + o_d
            tl.store(p_codes, tl.floor(b_first * share + 0.5).to(tl.int8), mask=m_own)
            tl.store(p_codes + middle, tl.floor(b_second * share + 0.5).to(tl.int8), mask=m_own)
        else:
            p_own = base.to(tl.pointer_type(dtype)) + o_row + o_d
            tl.store(p_own, b_first.to(dtype), mask=m_own)
            tl.store(p_own + middle, b_second.to(dtype), mask=m_own)


def place_heads(
    states: Tensor,
    bias: Tensor | None,
    norms: tuple[Tensor, Tensor, float] | None,
    angles: tuple[Tensor, Tensor],
    positions: Tensor,
    placement: RowPlaces,
    layer: int,
) -> Tensor:
    """Queries [R, H, D] of the rows, rotated; the rows' keys and values go to their stores.

    ``states`` [S, R, (H + 2 G) D] are the pieces of the product, ``norms`` the weights [D] of query and key and their
    epsilon, ``angles`` the cosines and sines [P, D] of all positions, ``positions`` [R] those of the rows.
    As :func:`lacuna_kernels.reference.heads`; stores in 8 bit have what :func:`lacuna_kernels.eight_bit.packed` makes.
    """
    pieces, rows, _ = states.shape
    heads, groups, width = placement.heads, placement.groups, placement.width
    query = torch.empty((rows, heads, width), device=states.device, dtype=placement.dtype)
    query_norm, key_norm, eps = norms if norms is not None else (states, states, 0.0)
    with torch.cuda.device_of(states):
        heads_kernel[(rows, heads + 2 * groups)](
            states, states if bias is None else bias, query_norm, key_norm, *angles, positions, placement.data, query,
            layer, pieces, states.stride(0), heads, groups, width, eps,
            BIASED=bias is not None, NORMED=norms is not None, EIGHT=placement.eight_bit,
            BD=triton.next_power_of_2(width // 2), num_warps=1,
        )  # fmt: skip
    return query
