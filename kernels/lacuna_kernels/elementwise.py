"""RMSNorm and rotary, in the form that is fastest on the device."""

from torch import Tensor

from lacuna_kernels import gpu, reference


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As :func:`lacuna_kernels.reference.rms_norm`."""
    if gpu.takes(x, weight):
        from lacuna_kernels.gpu.elementwise import rms_norm as fused

        return fused(x, weight, eps)
    return reference.rms_norm(x, weight, eps)


def add_rms_norm(x: Tensor, update: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """As :func:`lacuna_kernels.reference.add_rms_norm`."""
    if gpu.takes(x, update, weight):
        from lacuna_kernels.gpu.elementwise import add_rms_norm as fused

        return fused(x, update, weight, eps)
    return reference.add_rms_norm(x, update, weight, eps)


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As :func:`lacuna_kernels.reference.rotary`."""
    if gpu.takes(x):
        from lacuna_kernels.gpu.elementwise import rotary as fused

        return fused(x, cos, sin)
    return reference.rotary(x, cos, sin)
