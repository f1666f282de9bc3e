"""Attention, RMSNorm, rotary and unmask: one function each, with a plain-torch reference in ``reference``.

This package imports nothing of the others.
"""

from lacuna_kernels.attention import FoldedMask, attention, attention_dtype, empty_keys, fold_mask
from lacuna_kernels.elementwise import add_rms_norm, rms_norm, rotary
from lacuna_kernels.unmask import unmask

__all__ = [
    "FoldedMask",
    "add_rms_norm",
    "attention",
    "attention_dtype",
    "empty_keys",
    "fold_mask",
    "rms_norm",
    "rotary",
    "unmask",
]
