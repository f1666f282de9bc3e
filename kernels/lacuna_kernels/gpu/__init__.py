"""The GPU forms of the kernels: Triton kernels, and flash-attn's attention.

A pass over a few rows of a small model takes as long as its launches, so these kernels merge several launches into one.
Both packages are optional: without them torch's own operators run. Nothing is imported before a tensor on a GPU needs
it.
"""

import functools
import importlib
import os
from collections.abc import Callable

import torch
from torch import Tensor

# Triton 3.9 warns unless this says whether a product and a sum may be rounded once. They may.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
# The compute capability that flash-attn requires.
AMPERE = (8, 0)
# A product of more rows takes another form than those of few rows.
MAX_ROWS = 192


def runs_on(device: torch.device) -> bool:
    """Whether a device is a GPU that our kernels are for; all that asks for such a GPU asks here."""
    return device.type == "cuda"


def takes(*tensors: Tensor) -> bool:
    """Whether the Triton kernels can compute these tensors."""
    return reads(*tensors) and not triton_failure()


def reads(*tensors: Tensor) -> bool:
    """Whether tensors are on a GPU and need no gradients, and torch.compile does not fuse the work itself."""
    if not runs_on(tensors[0].device) or torch.compiler.is_compiling():
        return False
    return not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))


@functools.cache
def triton_failure() -> str:
    """The reason in one line why the Triton kernels do not work; "" where they do.

    It runs one of them: Triton compiles with tools of the machine, whose errors have no common type.
    """
    try:
        from lacuna_kernels.gpu.elementwise import rms_norm

        device = "cuda" if torch.cuda.is_available() else "cpu"
        rms_norm(torch.ones((1, 8), device=device), torch.ones(8, device=device), 1e-5)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    return ""


@functools.cache
def flash_attention() -> Callable[..., Tensor] | None:
    """flash-attn's function; None where it is not installed or does not support the GPU."""
    try:
        found: Callable[..., Tensor] = importlib.import_module("flash_attn").flash_attn_func
    except (ImportError, AttributeError):
        return None
    return found if torch.cuda.get_device_capability() >= AMPERE else None
