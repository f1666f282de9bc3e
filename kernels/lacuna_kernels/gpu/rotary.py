"""Rotary position embedding of all heads of a row, in one launch per layer, where plain torch needs five."""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def part(p, mask):
    """A tile in float32."""
    return tl.load(p, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def rotary_kernel(
    p_x, p_cos, p_sin, p_out,
    heads, rows, half,
    x_batch, x_head, x_row,
    cos_batch, cos_head, cos_row,
    BH: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """``y = [x1 cos1 - x2 sin1, x2 cos2 + x1 sin2]``; one program per BH heads of a row."""
    i_row, i_head, i_batch = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    o_h, o_d = i_head * BH + tl.arange(0, BH)[:, None], tl.arange(0, BD)[None, :]
    mask = (o_h < heads) & (o_d < half)
    # [BH, BD]
    o_x = i_batch * x_batch + o_h.to(tl.int64) * x_head + i_row.to(tl.int64) * x_row + o_d
    o_angle = i_batch * cos_batch + o_h * cos_head + i_row * cos_row + o_d
    o_out = ((i_batch * heads + o_h) * rows + i_row) * (2 * half) + o_d
    b_first, b_second = part(p_x + o_x, mask), part(p_x + o_x + half, mask)
    b_cos1, b_sin1 = part(p_cos + o_angle, mask), part(p_sin + o_angle, mask)
    b_cos2, b_sin2 = part(p_cos + o_angle + half, mask), part(p_sin + o_angle + half, mask)
    dtype = p_out.dtype.element_ty
    tl.store(p_out + o_out, (b_first * b_cos1 - b_second * b_sin1).to(dtype), mask=mask)
    tl.store(p_out + o_out + half, (b_second * b_cos2 + b_first * b_sin2).to(dtype), mask=mask)


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As :func:`lacuna_kernels.reference.rotary`, for ``x`` with up to four dimensions."""
    whole = x.view((1,) * (4 - x.ndim) + x.shape)
    if whole.stride(-1) != 1:
        whole = whole.contiguous()
    # An expanded view copies nothing: the added dimensions have a stride of 0.
    cos, sin = (angles.contiguous().expand(whole.shape) for angles in (cos, sin))
    batch, heads, rows, width = whole.shape
    out = torch.empty(whole.shape, device=x.device, dtype=torch.promote_types(x.dtype, cos.dtype))
    tile = min(triton.next_power_of_2(heads), 16)
    with torch.cuda.device_of(x):
        rotary_kernel[(rows, triton.cdiv(heads, tile), batch)](
            whole, cos, sin, out,
            heads, rows, width // 2,
            *whole.stride()[:3], *cos.stride()[:3],
            BH=tile, BD=triton.next_power_of_2(width // 2),
        )  # fmt: skip
    return out.view(x.shape)
