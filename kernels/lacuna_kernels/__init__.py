"""Attention, RMSNorm, rotary and unmask: one function each, with a plain-torch reference beside it."""

from lacuna_kernels.attention import attention
from lacuna_kernels.reference import rms_norm, rotary, unmask

__all__ = ["attention", "rms_norm", "rotary", "unmask"]
