"""RMSNorm and the gate of a feed-forward block, each in one launch, where plain torch needs five to seven."""

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


@triton.jit(do_not_specialize=["pieces"])
def rms_norm_kernel(
    p_x, p_update, p_weight, p_sum, p_out, eps, width, pieces, stride, ADDS: tl.constexpr, BD: tl.constexpr
):
    """``s = x (+ the sum of the update's pieces)``, ``out = s / sqrt(mean(s^2) + eps) * weight``; a program per row."""
    i_row = tl.program_id(0).to(tl.int64)
    o_d = tl.arange(0, BD)
    m_d = o_d < width
    # [BD]
    b_x = tl.load(p_x + i_row * width + o_d, mask=m_d, other=0.0)
    if ADDS:
        b_update = tl.zeros([BD], tl.float32)
        for i in range(pieces):
            b_update += tl.load(p_update + i * stride + i_row * width + o_d, mask=m_d, other=0.0).to(tl.float32)
        b_x = (b_x.to(tl.float32) + b_update).to(b_x.dtype)
        tl.store(p_sum + i_row * width + o_d, b_x, mask=m_d)
    b_wide = b_x.to(tl.float32)
    b_normed = b_wide * tl.rsqrt(tl.sum(b_wide * b_wide, axis=0) / width + eps)
    # Rounded before the weight, as in the reference.
    b_normed = b_normed.to(b_x.dtype).to(tl.float32)
    b_weight = tl.load(p_weight + o_d, mask=m_d, other=0.0).to(tl.float32)
    tl.store(p_out + i_row * width + o_d, (b_normed * b_weight).to(p_out.dtype.element_ty), mask=m_d)


def rms_norm(x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype | None = None) -> Tensor:
    """As :func:`lacuna_kernels.reference.rms_norm`, in ``dtype`` if it is given."""
    x = x.contiguous()
    return _launch(x, None, weight, x, eps, dtype)


def add_rms_norm(
    x: Tensor, update: Tensor, weight: Tensor, eps: float, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """As :func:`lacuna_kernels.reference.add_rms_norm`; ``update`` is of the shape of ``x``.

    It may also be a product in pieces [S, ...], which are added in float32. The norm is in ``dtype`` if it is given.
    """
    total = torch.empty_like(x, memory_format=torch.contiguous_format)
    pieces = update.contiguous().view(-1, *x.shape)
    return total, _launch(x.contiguous(), pieces, weight, total, eps, dtype)


def _launch(
    x: Tensor, pieces: Tensor | None, weight: Tensor, total: Tensor, eps: float, dtype: torch.dtype | None
) -> Tensor:
    width = x.shape[-1]
    out = torch.empty(x.shape, device=x.device, dtype=dtype or torch.promote_types(x.dtype, weight.dtype))
    update, count, adds = (x, 0, False) if pieces is None else (pieces, len(pieces), True)
    with torch.cuda.device_of(x):
        rms_norm_kernel[(x.numel() // width,)](
            x, update, weight.contiguous(), total, out, eps, width, count, x.numel(),
            ADDS=adds, BD=triton.next_power_of_2(width),
        )  # fmt: skip
    return out
