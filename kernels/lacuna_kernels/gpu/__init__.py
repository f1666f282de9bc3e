"""What a GPU runs in place of the plain forms: kernels in Triton, and flash-attn's attention.

A pass over some rows of a small model is as long as its launches, so these kernels are there to make many into one.
Neither package is needed: where one is missing, torch's own operators do the work. Nothing here is imported before a
tensor on a GPU asks for it.
"""

import functools
import importlib
import os
from collections.abc import Callable

import torch
from torch import Tensor

# Triton 3.9 warns where nobody says whether a product and a sum may be one rounding. They may.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
# The first GPUs that flash-attn is written for.
AMPERE = (8, 0)


def takes(*tensors: Tensor) -> bool:
    """Whether Triton's kernels do the work."""
    return reads(*tensors) and not triton_failure()


def reads(*tensors: Tensor) -> bool:
    """Whether tensors on a GPU are only read: nothing is learnt from them, and no compiler fuses the work itself."""
    if not tensors[0].is_cuda or torch.compiler.is_compiling():
        return False
    return not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))


@functools.cache
def triton_failure() -> str:
    """Why Triton's kernels cannot be had, in a line; "" where they can.

    One is run to know: Triton compiles with tools of the machine, and what can go wrong there has no common type.
    """
    try:
        from lacuna_kernels.gpu.rms_norm import rms_norm

        device = "cuda" if torch.cuda.is_available() else "cpu"
        rms_norm(torch.ones((1, 8), device=device), torch.ones(8, device=device), 1e-5)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    return ""


@functools.cache
def flash_attention() -> Callable[..., Tensor] | None:
    """flash-attn's function, where it is installed and the GPU is one that it is written for."""
    try:
        found: Callable[..., Tensor] = importlib.import_module("flash_attn").flash_attn_func
    except (ImportError, AttributeError):
        return None
    return found if torch.cuda.get_device_capability() >= AMPERE else None
