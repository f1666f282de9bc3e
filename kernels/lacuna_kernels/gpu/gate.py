"""The gate of a feed-forward block, ``silu(g) * u``, in one launch that also adds the pieces of the product."""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 512


@triton.jit(do_not_specialize=["pieces"])
def gate_kernel(p_states, p_out, pieces, stride, width, BD: tl.constexpr):
    """``states`` [S, R, 2 F] hold g, then u; one program per BD columns of a row."""
    i_row = tl.program_id(0).to(tl.int64)
    o_d = tl.program_id(1) * BD + tl.arange(0, BD)
    m_d = o_d < width
    # [BD] each
    b_gate, b_up = tl.zeros([BD], tl.float32), tl.zeros([BD], tl.float32)
    for i in range(pieces):
        p_own = p_states + i * stride + i_row * 2 * width + o_d
        b_gate += tl.load(p_own, mask=m_d, other=0.0).to(tl.float32)
        b_up += tl.load(p_own + width, mask=m_d, other=0.0).to(tl.float32)
    b_out = b_gate / (1.0 + tl.exp(-b_gate)) * b_up
    tl.store(p_out + i_row * width + o_d, b_out.to(p_out.dtype.element_ty), mask=m_d)


def gate(states: Tensor, dtype: torch.dtype) -> Tensor:
    """``silu(g) * u`` [R, F] in ``dtype``, of the pieces ``states`` [S, R, 2 F] of a product.

    As :func:`lacuna_kernels.reference.gate`.
    """
    pieces, rows, both = states.shape
    out = torch.empty((rows, both // 2), device=states.device, dtype=dtype)
    with torch.cuda.device_of(states):
        gate_kernel[(rows, triton.cdiv(both // 2, BLOCK))](states, out, pieces, states.stride(0), both // 2, BD=BLOCK)
    return out
