"""Products of few rows with a large weight, in bfloat16 or in 8-bit codes.

Such a product takes as long as reading the weight does. Programs read blocks of its rows (outputs), and where these are
few, each block in several pieces along the inputs, so that all processors read. The sums of the pieces stay apart, in
float32: the kernel that comes next adds them as it reads them.

Programs that read the same part of the weight for other rows are neighbours, so that all but one find it in the cache.

A row's sums do not depend on the number of rows: the pieces and the order within each follow from the weight's shape.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from lacuna_kernels.gpu.placement import operand
from lacuna_kernels.products import MAX_ROWS

# Outputs and inputs of a block. With 64 outputs a block is one operand of a warp group's product on Hopper GPUs.
OUTPUTS = 64
INPUTS = 128
# Programs that keep a GPU of 132 processors busy, two on each.
PROGRAMS = 264
# The kernel that comes next reads so many pieces, at most.
MAX_PIECES = 8


@triton.jit(do_not_specialize=["rows", "steps"])
def product_kernel(
    p_x, p_weight, p_scale, p_out, rows, outputs, inputs, steps,
    SCALED: tl.constexpr, WIDE: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """``out = x W^T`` over the inputs of one piece, ``steps`` times BK of them: BN outputs of BR rows."""
    i_row, i_out, i_piece = tl.program_id(0), tl.program_id(1), tl.program_id(2)
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


def pieces(outputs: int, inputs: int) -> tuple[int, int]:
    """How many pieces a weight is read in, and how many times INPUTS inputs each has."""
    blocks = triton.cdiv(inputs, INPUTS)
    wanted = min(max(PROGRAMS // triton.cdiv(outputs, OUTPUTS), 1), MAX_PIECES, blocks)
    each = triton.cdiv(blocks, wanted)
    return triton.cdiv(blocks, each), each


def product(x: Tensor, weight: Tensor, scale: Tensor | None = None) -> Tensor:
    """As :func:`lacuna_kernels.product`; raises ValueError for too many rows."""
    (rows, inputs), outputs = x.shape, len(weight)
    if rows > MAX_ROWS:
        raise ValueError(f"a product of {rows} rows, more than {MAX_ROWS}")
    count, steps = pieces(outputs, inputs)
    out = torch.empty((count, rows, outputs), device=x.device)
    tile = 16 if rows <= 16 else 32
    with torch.cuda.device_of(x):
        product_kernel[(triton.cdiv(rows, tile), triton.cdiv(outputs, OUTPUTS), count)](
            x.contiguous(), weight, weight if scale is None else scale, out, rows, outputs, inputs, steps,
            SCALED=scale is not None, WIDE=not x.is_cuda, BR=tile, BN=OUTPUTS, BK=INPUTS,
            num_warps=4, num_stages=4,
        )  # fmt: skip
    return out
