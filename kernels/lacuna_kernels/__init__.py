"""Attention, RMSNorm, rotary, products of few rows and unmask: a function each, its plain form in ``reference``.

This package imports nothing of the others.
"""

from lacuna_kernels.gpu import MAX_ROWS
from lacuna_kernels.operations import (
    FoldedMask,
    add_rms_norm,
    attention,
    attention_dtype,
    empty_keys,
    fold_mask,
    likeliest,
    product,
    rms_norm,
    unmask,
)
from lacuna_kernels.reference import rotary

__all__ = [
    "MAX_ROWS",
    "FoldedMask",
    "add_rms_norm",
    "attention",
    "attention_dtype",
    "empty_keys",
    "fold_mask",
    "likeliest",
    "product",
    "rms_norm",
    "rotary",
    "unmask",
]
