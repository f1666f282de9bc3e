"""Linears: dense, and 8 and 4 bit on CPUs that have the instructions."""

import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_kernels.native import NativeKernels

Linear = Callable[[Tensor], Tensor]


class DenseLinear:
    """``x W^T (+ b)`` in the weight's own precision; the result has the precision of ``x``."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        """``x`` [..., in] -> [..., out]."""
        return F.linear(x.to(self._weight.dtype), self._weight, self._bias).to(x.dtype)


def quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """8-bit codes [out, in] of a weight and one scale per row [out]: ``weight ~ codes * scale``."""
    scale = weight.abs().amax(dim=1).clamp_min(1e-8) / 127.0
    return (weight / scale[:, None]).round().to(torch.int8), scale


class Int8Linear:
    """``x W^T (+ b)`` in 8 bit: weights with one scale per output row, activations with one per row (FBGEMM).

    FBGEMM takes one activation scale for the whole input, and one outlier row (the document token, to start with)
    would cost all others their precision, so rows are brought to the same range first. On 300 tokens of Python the
    divergence from float32 is 0.04 nats a token this way and 0.66 without; what ``smoothing`` does comes on top.
    """

    def __init__(self, codes: Tensor, scale: Tensor, bias: Tensor | None = None) -> None:
        zeros = torch.zeros(len(scale), dtype=torch.long)
        with warnings.catch_warnings():
            # torch announces that quantised tensors will go in a later release; the release is pinned, and the
            # packed operator below has no other way in.
            warnings.filterwarnings("ignore", message=".*quantized tensor creation.*")
            packed = torch._make_per_channel_quantized_tensor(codes, scale.double(), zeros, 0)
        self._packed = torch.ops.quantized.linear_prepack(packed, None)
        self._bias = bias
        # Without these instructions products of bytes are added up in 16 bit, which 8-bit activations overflow.
        capabilities = torch.cpu.get_capabilities()
        self._7_bit = not (capabilities.get("avx512_vnni", False) or capabilities.get("avx_vnni", False))

    def __call__(self, x: Tensor) -> Tensor:
        """``x`` [..., in] float32 -> [..., out] float32."""
        scale = x.abs().amax(dim=-1, keepdim=True).clamp_min_(1e-8)
        y: Tensor = torch.ops.quantized.linear_dynamic(x / scale, self._packed, self._7_bit)
        y.mul_(scale)
        return y if self._bias is None else y.add_(self._bias)


class NativeLinear:
    """The same in our own kernel, which takes activations by blocks of a row, and weights in 4 bit as well.

    ``packed`` is what the kernel reads.
    """

    def __init__(
        self,
        kernels: NativeKernels,
        weight: Tensor,
        scale: Tensor,
        bias: Tensor | None = None,
        blocks: Tensor | None = None,
    ) -> None:
        """``weight`` [out, in] are codes, or codes packed by these very ``kernels`` (uint8).

        Where there are ``blocks``, outputs in 4 bit that these kernels packed, they are the first of the linear's.
        """
        packed = weight if weight.dtype is torch.uint8 else kernels.packed(weight)
        self.packed = kernels.bind(packed, scale, bias, blocks)
        self._kernels = kernels

    def __call__(self, x: Tensor) -> Tensor:
        """``x`` [..., in] float32 -> [..., out] float32."""
        return self._kernels.linear(x, self.packed)

    def lookup(self, ids: Tensor) -> Tensor:
        """Rows of the weight: ``ids`` [...] -> [..., in] float32."""
        return self._kernels.lookup(ids, self.packed)
