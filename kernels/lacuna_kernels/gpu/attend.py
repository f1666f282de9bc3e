"""Attention of a few rows over a long context, split over the keys so that all processors of a GPU work.

One launch attends to blocks of keys, another merges the blocks (flash-decoding). A block is a fixed range of the rows
that a row attends to, in the order of its two lists, and blocks are merged in a fixed order: a row's result depends
neither on the other rows, nor on their number, nor on where the store has the keys. Each row has its own store; rows of
the same store find its keys in the GPU's cache.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from lacuna_kernels.gpu.heads import NUMBERS, RowPlaces, operand

# Keys of a block.
KEYS = 64
# A matrix product has at least so many rows and inputs.
LEAST = 16
# Blocks that are merged at a time.
MERGED = 16
# The bytes of a row of the store in a list, and how far its token has moved.
PAIR = tl.constexpr(8)
# Lower than every score, and finite, so that a difference of two is a number.
LOWEST = tl.constexpr(-1e30)


@triton.jit
def stored(p_rows, p_scales, o_row, m_row, o_d, m_d, EIGHT: tl.constexpr):
    """Rows of a store [BK, BD]; those in 8 bit in float32."""
    b_x = tl.load(p_rows + o_row[:, None] + o_d[None, :], mask=m_row[:, None] & m_d[None, :], other=0)
    if EIGHT:
        b_x = b_x.to(tl.float32) * tl.load(p_scales, mask=m_row, other=0.0)[:, None]
    return b_x


@triton.jit(do_not_specialize=["layer"])
def attend_kernel(
    p_query, p_placement, p_cos, p_sin, p_mixed, p_stats, layer, heads, width, scale,
    REPEATS: tl.constexpr, EIGHT: tl.constexpr, WIDE: tl.constexpr,
    BQ: tl.constexpr, BK: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """A row's queries of a group, and BK keys: ``m = max(s)``, ``l = sum(e^(s-m))``, ``sum(e^(s-m) v)``.

    Keys whose tokens have moved are rotated as far.
    """
    i_row, i_group, i_block = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    p_place = p_placement + NUMBERS * i_row
    length = tl.load(p_place + 5)
    if i_block * BK >= length:
        return
    o_q, o_k, o_d = tl.arange(0, BQ), i_block * BK + tl.arange(0, BK), tl.arange(0, BD)
    m_q, m_k, m_d = o_q < REPEATS, o_k < length, o_d < width
    o_head = i_row * heads + i_group * REPEATS + o_q
    b_query = tl.load(p_query + o_head[:, None] * width + o_d[None, :], mask=m_q[:, None] & m_d[None, :], other=0.0)
    layer_stride, group_stride = tl.load(p_place + 2), tl.load(p_place + 3)
    first = layer * tl.multiple_of(layer_stride, 8) + i_group * tl.multiple_of(group_stride, 8)
    # Torch's memory begins at multiples of 16 bytes.
    dtype = p_query.dtype.element_ty
    kind = tl.pointer_type(tl.int8 if EIGHT else dtype)
    p_keys = tl.multiple_of(tl.load(p_place).to(kind), 16)
    p_values = tl.multiple_of(tl.load(p_place + 1).to(kind), 16)
    listed = tl.load(p_place + 7)
    b_seen = tl.where(o_k < listed, tl.load(p_place + 6) + PAIR * o_k, tl.load(p_place + 8) + PAIR * (o_k - listed))
    p_seen = b_seen.to(tl.pointer_type(tl.int32))
    b_row, b_by = tl.load(p_seen, mask=m_k, other=0).to(tl.int64), tl.load(p_seen + 1, mask=m_k, other=0)
    o_row, m_kv = first + b_row * width, m_k[:, None] & m_d[None, :]
    o_scale = first // width + b_row
    p_scales = tl.load(p_place + 9).to(tl.pointer_type(tl.float32)) + o_scale
    p_value_scales = tl.load(p_place + 10).to(tl.pointer_type(tl.float32)) + o_scale
    # [BK, BD] each
    b_key = stored(p_keys, p_scales, o_row, m_k, o_d, m_d, EIGHT)
    b_value = stored(p_values, p_value_scales, o_row, m_k, o_d, m_d, EIGHT)
    if tl.max(tl.abs(b_by), axis=0) > 0:
        middle = width // 2
        o_other = tl.where(o_d < middle, o_d + middle, o_d - middle)
        b_other = stored(p_keys, p_scales, o_row, m_k, o_other, m_d, EIGHT)
        o_angle = tl.abs(b_by)[:, None] * width + o_d[None, :]
        b_cos, b_sin = tl.load(p_cos + o_angle, mask=m_kv, other=0.0), tl.load(p_sin + o_angle, mask=m_kv, other=0.0)
        b_sin = tl.where((b_by[:, None] < 0) == (o_d[None, :] < middle), b_sin, -b_sin)
        b_key = (b_key.to(tl.float32) * b_cos + b_other.to(tl.float32) * b_sin).to(b_key.dtype)
    m_seen = m_k[None, :]
    # [BQ, BK]
    b_score = (
        tl.dot(operand(b_query, dtype, WIDE), tl.trans(operand(b_key, dtype, WIDE)), input_precision="ieee") * scale
    )
    b_score = tl.where(m_seen, b_score, LOWEST)
    b_most = tl.max(b_score, axis=1)
    b_share = tl.where(m_seen, tl.exp(b_score - b_most[:, None]), 0.0)
    b_share, total = b_share.to(dtype), tl.sum(b_share, axis=1)
    b_mixed = tl.dot(operand(b_share, dtype, WIDE), operand(b_value, dtype, WIDE), input_precision="ieee")
    blocks = tl.num_programs(2)
    o_own = o_head * blocks + i_block
    tl.store(p_stats + 2 * o_own, b_most, mask=m_q)
    tl.store(p_stats + 2 * o_own + 1, total, mask=m_q)
    tl.store(p_mixed + o_own[:, None] * width + o_d[None, :], b_mixed, mask=m_q[:, None] & m_d[None, :])


@triton.jit
def merge_kernel(
    p_placement, p_mixed, p_stats, p_out, heads, blocks, width,
    BB: tl.constexpr, BK: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Merge the blocks of one row and head, BB at a time."""
    i_own = tl.program_id(0).to(tl.int64)
    used = tl.cdiv(tl.load(p_placement + NUMBERS * (i_own // heads) + 5), BK)
    o_d = tl.arange(0, BD)
    m_d = o_d < width
    most, total = tl.full([1], LOWEST, tl.float32), tl.zeros([1], tl.float32)
    # [BD]
    b_mixed = tl.zeros([BD], tl.float32)
    for first in range(0, used, BB):
        o_b = first + tl.arange(0, BB)
        m_b = o_b < used
        p_own = p_stats + 2 * (i_own * blocks + o_b)
        # [BB]
        b_most, b_total = tl.load(p_own, mask=m_b, other=LOWEST), tl.load(p_own + 1, mask=m_b, other=0.0)
        new = tl.maximum(most, tl.max(b_most, axis=0))
        b_scale, scale = tl.exp(b_most - new), tl.exp(most - new)
        p_block = p_mixed + (i_own * blocks + o_b)[:, None] * width + o_d[None, :]
        b_block = tl.load(p_block, mask=m_b[:, None] & m_d[None, :], other=0.0)
        total = total * scale + tl.sum(b_scale * b_total, axis=0)
        b_mixed = b_mixed * scale + tl.sum(b_scale[:, None] * b_block, axis=0)
        most = new
    b_mixed = b_mixed / tl.where(total > 0.0, total, 1.0)
    tl.store(p_out + i_own * width + o_d, b_mixed.to(p_out.dtype.element_ty), mask=m_d)


def attend(query: Tensor, placement: RowPlaces, angles: tuple[Tensor, Tensor], layer: int, capacity: int) -> Tensor:
    """Attention [R, H, D] of ``query`` [R, H, D] over the rows of each row's store that the ``placement`` lists.

    ``angles`` are the cosines and sines [P, D] of all positions. Each row sees at most ``capacity`` rows; padding gets
    zeros. Shapes aside, as :func:`lacuna_kernels.reference.attention`.
    """
    rows, heads, width = query.shape
    blocks, repeats = triton.cdiv(capacity, KEYS), heads // placement.groups
    mixed = torch.empty((rows, heads, blocks, width), device=query.device)
    stats = torch.empty((rows, heads, blocks, 2), device=query.device)
    out, tile = torch.empty_like(query), triton.next_power_of_2(width)
    with torch.cuda.device_of(query):
        attend_kernel[(rows, placement.groups, blocks)](
            query, placement.data, *angles, mixed, stats, layer, heads, width, width**-0.5,
            REPEATS=repeats, EIGHT=placement.eight_bit, WIDE=not query.is_cuda,
            BQ=max(triton.next_power_of_2(repeats), LEAST), BK=KEYS, BD=max(tile, LEAST), num_warps=4,
        )  # fmt: skip
        merge_kernel[(rows * heads,)](
            placement.data, mixed, stats, out, heads, blocks, width, BB=MERGED, BK=KEYS, BD=tile, num_warps=4
        )
    return out
