"""Attention, RMSNorm, rotary and unmask: one function each, with a plain-torch reference beside it."""

from lacuna_kernels.attention import FoldedMask, attention, attention_dtype, empty_keys, fold_mask
from lacuna_kernels.reference import rms_norm, rotary
from lacuna_kernels.unmask import unmask

__all__ = ["FoldedMask", "attention", "attention_dtype", "empty_keys", "fold_mask", "rms_norm", "rotary", "unmask"]
