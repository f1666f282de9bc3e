"""Where the rows of a pass lie in stores of keys and values, and the launch that brings a layer's heads there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import quantised

# Numbers of a row.
NUMBERS = tl.constexpr(11)


@triton.jit
def operand(b_x, dtype: tl.constexpr, WIDE: tl.constexpr):
    """An operand of a product in ``dtype``; ``WIDE``: in float32, since the interpreter multiplies no bfloat16."""
    return b_x.to(tl.float32) if WIDE else b_x.to(dtype)


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """The places of a pass's rows, for ``heads`` query heads and ``groups`` key heads of ``width``.

    ``data`` int64 [R, 11] has for each row the addresses of keys and values, the strides of a layer and of a group in
    elements, the row of the store that it takes, to how many rows of the store it attends, and two lists of these, the
    second of which goes on where the first ends: the address and the length of the first, and the address of the
    second; and the addresses of the scales of keys and values, if the stores are in ``eight_bit``. A list, int32 [n,
    2], has rows in the order in which they are added up, each with the number of positions that its token has moved
    since it was read. Rows that attend to 0 are padding: they write nothing. Queries are in ``dtype``, and so are the
    stores if they are not in 8 bit (:mod:`lacuna_kernels.quantised`).
    """

    data: Tensor
    heads: int
    groups: int
    width: int
    dtype: torch.dtype
    eight_bit: bool = False


def numbers(
    keys: Tensor,
    values: Tensor,
    tail: int,
    counts: NDArray[np.int64],
    lists: NDArray[np.int64] | int = 0,
    scales: Sequence[Tensor] = (),
) -> NDArray[np.int64]:
    """The numbers of :class:`RowPlaces` for rows at the ``tail`` of a store [L, G, K, D], with ``scales`` [L, G, K].

    Each attends to so many rows as ``counts`` [R] says, the first of its two ``lists`` [R, 3].
    """
    data = np.empty((len(counts), NUMBERS.value), dtype=np.int64)
    data[:, :4] = keys.data_ptr(), values.data_ptr(), keys.stride(0), keys.stride(1)
    data[:, 4] = np.arange(tail, tail + len(counts))
    data[:, 5], data[:, 6:9] = counts, lists
    data[:, 9:] = [one.data_ptr() for one in scales] or 0
    return data


MOST, LEAST = tl.constexpr(quantised.MOST), tl.constexpr(quantised.LEAST)


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
    As :func:`lacuna_kernels.reference.heads`; stores in 8 bit have what :func:`lacuna_kernels.quantised.packed` makes.
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
