"""Rows in 8 bit: codes, and a scale for each row that the largest of its numbers decides."""

import torch
from torch import Tensor

# The largest code, and the least that the largest number of a row counts as.
MOST, LEAST = 127, 1e-30


def packed(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Codes int8 [.., D] and scales float32 [..] of ``rows`` [.., D]; a number is its code times the scale."""
    most = rows.float().abs().amax(-1, keepdim=True)
    codes = torch.floor(rows.float() * (MOST / most.clamp(min=LEAST)) + 0.5)
    return codes.to(torch.int8), (most / MOST).squeeze(-1)


def unpacked(codes: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """The rows [.., D]."""
    return (codes.float() * scales[..., None]).to(dtype)
