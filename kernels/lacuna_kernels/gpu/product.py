"""Products of few rows with a large weight, in bfloat16 or in 8-bit codes.

Such a product takes as long as reading the weight does. Programs read blocks of its rows (outputs), and where these are
few, each block in several pieces along the inputs, so that all processors read. The sums of the pieces stay apart, in
float32: the kernel that comes next adds them as it reads them.

Programs that read the same part of the weight for other rows are neighbours, so that all but one find it in the cache.

A row's sums do not depend on the number of rows: the pieces and the order within each follow from the weight's shape.

Some rows may have an addition of low rank, ``high (low x)``, for two launches in all: the first one multiplies with
``low``, too, the second one makes one more piece. The other rows of that piece are 0, and their sums what they are
without it.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from lacuna_kernels.gpu.heads import operand

# Outputs and inputs of a block. With 64 outputs a block is one operand of a warp group's product on Hopper GPUs.
OUTPUTS = 64
INPUTS = 128
# Programs that keep a GPU of 132 processors busy, two on each.
PROGRAMS = 264
# The kernel that comes next reads so many pieces, at most, and an addition.
MAX_PIECES = 8
# The least inputs of a block of a product.
LEAST_RANK = 16


@dataclass(frozen=True, slots=True)
class Addition:
    """``low`` [K, in] in the form of a weight [out, in], with a ``scale`` [K] where that has one; ``high`` [out, K]."""

    low: Tensor
    scale: Tensor | None
    high: Tensor


@triton.jit(do_not_specialize=["rows", "steps", "rank", "blocks"])
def product_kernel(
    p_x, p_weight, p_scale, p_out, p_low, p_low_scale, p_low_out, rows, outputs, inputs, steps, rank, blocks,
    SCALED: tl.constexpr, ADDS: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """``out = x W^T`` over the inputs of one piece, ``steps`` times BK of them: BN outputs of BR rows.

    Where it ``ADDS``, programs behind those of the weight's ``blocks`` do the same with ``low``, for ``rank`` outputs.
    """
    i_row, i_out, i_piece = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if ADDS:  # noqa: SIM102 - a constant has a condition of its own
        if i_out >= blocks:
            p_weight, p_scale, p_out = p_low, p_low_scale, p_low_out
            outputs, i_out = rank, i_out - blocks
    o_r, o_n = i_row * BR + tl.arange(0, BR), i_out * BN + tl.arange(0, BN)
    m_r, m_n = o_r < rows, o_n < outputs
    # [BN, BR]
    b_sum = tl.zeros([BN, BR], tl.float32)
    last = min((i_piece + 1) * steps, tl.cdiv(inputs, BK))
    for step in range(i_piece * steps, last):
        o_k = step * BK + tl.arange(0, BK)
        m_k = o_k < inputs
        p_block = p_weight + o_n[:, None].to(tl.int64) * inputs + o_k[None, :]
        b_weight = tl.load(p_block, mask=m_n[:, None] & m_k[None, :], other=0)
        b_x = tl.load(p_x + o_r[None, :] * inputs + o_k[:, None], mask=m_r[None, :] & m_k[:, None], other=0.0)
        b_weight, b_x = operand(b_weight, b_x.dtype, WIDE), operand(b_x, b_x.dtype, WIDE)
        b_sum = tl.dot(b_weight, b_x, b_sum, input_precision="ieee")
    if SCALED:
        b_sum *= tl.load(p_scale + o_n, mask=m_n, other=0.0)[:, None]
    p_own = p_out + (i_piece * rows + o_r[None, :]).to(tl.int64) * outputs + o_n[:, None]
    tl.store(p_own, b_sum, mask=m_n[:, None] & m_r[None, :])


@triton.jit(do_not_specialize=["rows", "pieces"])
def addition_kernel(
    p_low, p_gate, p_high, p_out, rows, outputs, rank, pieces,
    WIDE: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """``out = (gate * the sum of low's pieces) high^T``: BN outputs of BR rows, where ``gate`` is 1 or 0."""
    i_row, i_out = tl.program_id(0), tl.program_id(1)
    o_r, o_n, o_k = i_row * BR + tl.arange(0, BR), i_out * BN + tl.arange(0, BN), tl.arange(0, BK)
    m_r, m_n, m_k = o_r < rows, o_n < outputs, o_k < rank
    # [BK, BR]
    b_low = tl.zeros([BK, BR], tl.float32)
    for i in range(pieces):
        p_own = p_low + (i * rows + o_r[None, :]) * rank + o_k[:, None]
        b_low += tl.load(p_own, mask=m_r[None, :] & m_k[:, None], other=0.0)
    b_low *= tl.load(p_gate + o_r, mask=m_r, other=0.0).to(tl.float32)[None, :]
    b_high = tl.load(p_high + o_n[:, None] * rank + o_k[None, :], mask=m_n[:, None] & m_k[None, :], other=0.0)
    dtype = b_high.dtype
    b_sum = tl.dot(operand(b_high, dtype, WIDE), operand(b_low, dtype, WIDE), input_precision="ieee")
    tl.store(p_out + o_r[None, :].to(tl.int64) * outputs + o_n[:, None], b_sum, mask=m_n[:, None] & m_r[None, :])


def pieces(outputs: int, inputs: int) -> tuple[int, int]:
    """How many pieces a weight is read in, and how many times INPUTS inputs each has."""
    blocks = triton.cdiv(inputs, INPUTS)
    wanted = min(max(PROGRAMS // triton.cdiv(outputs, OUTPUTS), 1), MAX_PIECES, blocks)
    each = triton.cdiv(blocks, wanted)
    return triton.cdiv(blocks, each), each


def product(x: Tensor, weight: Tensor, scale: Tensor | None = None) -> Tensor:
    """As :func:`lacuna_kernels.product`."""
    count, _ = pieces(len(weight), x.shape[1])
    out = torch.empty((count, len(x), len(weight)), device=x.device)
    _launch(x, weight, scale, out)
    return out


def added_product(x: Tensor, weight: Tensor, scale: Tensor | None, addition: Addition, gate: Tensor) -> Tensor:
    """The same in one piece more: the ``addition``, where the ``gate`` [R, 1] is 1; it is 0 elsewhere.

    As :func:`lacuna_kernels.reference.addition`.
    """
    rows, outputs, rank = len(x), len(weight), len(addition.low)
    count, _ = pieces(outputs, x.shape[1])
    out = torch.empty((count + 1, rows, outputs), device=x.device)
    low = torch.empty((count, rows, rank), device=x.device)
    _launch(x, weight, scale, out, addition, low)
    tile = 16 if rows <= 16 else 32
    with torch.cuda.device_of(x):
        addition_kernel[(triton.cdiv(rows, tile), triton.cdiv(outputs, OUTPUTS))](
            low, gate, addition.high, out[count], rows, outputs, rank, count,
            WIDE=not x.is_cuda, BR=tile, BN=OUTPUTS, BK=max(triton.next_power_of_2(rank), LEAST_RANK),
        )  # fmt: skip
    return out


def _launch(
    x: Tensor,
    weight: Tensor,
    scale: Tensor | None,
    out: Tensor,
    addition: Addition | None = None,
    low: Tensor | None = None,
) -> None:
    """Multiply with a weight into the first pieces of ``out``, and with what is low in an ``addition``."""
    (rows, inputs), outputs = x.shape, len(weight)
    count, steps = pieces(outputs, inputs)
    tile, blocks = 16 if rows <= 16 else 32, triton.cdiv(outputs, OUTPUTS)
    own, more, rank = (weight, scale, out), (weight, scale, out), 0
    if addition is not None and low is not None:
        more, rank = (addition.low, addition.scale, low), len(addition.low)
    with torch.cuda.device_of(x):
        product_kernel[(triton.cdiv(rows, tile), blocks + triton.cdiv(rank, OUTPUTS), count)](
            x.contiguous(), *_pointers(own), *_pointers(more), rows, outputs, inputs, steps, rank, blocks,
            SCALED=scale is not None, ADDS=rank > 0, WIDE=not x.is_cuda, BR=tile, BN=OUTPUTS, BK=INPUTS,
            num_warps=4, num_stages=4,
        )  # fmt: skip


def _pointers(given: tuple[Tensor, Tensor | None, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """A weight, its scale, and its sums; the kernel reads no scale of a weight that has none."""
    weight, scale, out = given
    return weight, weight if scale is None else scale, out
