"""The command ``kernels``: compares every kernel with its plain-torch reference on the available device.

Without a GPU, Triton's interpreter runs its kernels: this checks their results and not their speed. The linears in C
are checked and timed there, in the shapes of a small model's layers, in 8 bit and as a draft model in 4.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from rich.table import Table
from torch import Tensor

from lacuna_kernels import attention, attention_dtype, empty_keys, fold_mask, gpu, quantised, reference
from lacuna_kernels.native import NativeKernels, PackedLinear
from lacuna_model.core.errors import RequestError
from lacuna_model.network.linear import quantize_rows

# The shapes of SmolLM2-135M's passes, over the context of a large file.
HIDDEN, HEADS, GROUPS, WIDTH, VOCAB, CONTEXT = 576, 9, 3, 64, 49152, 1090
# A pass that verifies a draft has a few rows, the encoding of a context many.
ROWS = (1, 2, 4, 8, 16, 64, 200)
# The interpreter takes seconds with more rows.
INTERPRETED_ROWS = (1, 4)
CANDIDATES = 12
# The linears, [out, in]: a layer of Qwen2.5-Coder-0.5B.
LAYER = {"qkv": (1152, 896), "output": (896, 896), "gate_up": (9728, 896), "down": (896, 4864)}
LINEAR_ROWS = (1, 2, 4, 8, 16)
# Number of calls that are timed together: a pass pays for each call the longer of launch and work.
CALLS = 20
# The largest allowed difference, relative to the greatest value; for bfloat16 two steps of its precision. 8-bit linears
# round their inputs to 127 steps.
CLOSE = {torch.float32: 1e-4, torch.bfloat16: 1.6e-2, torch.int8: 2e-2}

Result = Tensor | tuple[Tensor, ...]
Kernel = Callable[[], Result]


class KernelCost(msgspec.Struct, frozen=True):
    """A kernel and its reference: microseconds per call (None if not timed) and the largest difference.

    The difference is relative to the greatest value; ``right`` means that it is small enough.
    """

    kernel: str
    rows: int
    p50_us: float | None
    p95_us: float | None
    reference_p50_us: float | None
    difference: float
    right: bool


class Case(msgspec.Struct, frozen=True):
    """A call of a kernel, and the same call of its reference; ``dtype`` is what the kernel computes in."""

    name: str
    rows: int
    dtype: torch.dtype
    kernel: Kernel
    plain: Kernel


@torch.inference_mode()
def bench_kernels(device: torch.device, *, runs: int, native: NativeKernels | None = None) -> list[KernelCost]:
    """Returns the cost of every kernel for several numbers of rows, and its difference from the reference.

    On a CPU only the ``native`` linears are timed. Raises RequestError if Triton's kernels are not available.
    """
    on_gpu = device.type == "cuda"
    if not on_gpu:
        os.environ["TRITON_INTERPRET"] = "1"  # Triton reads it at its first import
    if failure := gpu.triton_failure():
        raise RequestError(f"Triton's kernels cannot be had, see `lacuna doctor`: {failure}")
    rows = ROWS if on_gpu else INTERPRETED_ROWS
    costs = [_cost(case, runs if on_gpu else 0, device) for count in rows for case in _cases(count, device)]
    return costs + [_cost(case, runs, device) for case in (_linear_cases(native) if native else ())]


def _cases(rows: int, device: torch.device) -> Iterator[Case]:
    from lacuna_kernels.gpu.elementwise import add_rms_norm, rms_norm, rotary
    from lacuna_kernels.gpu.unmask import unmask

    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(device)

    x, update, weight = random(1, rows, HIDDEN), random(1, rows, HIDDEN), random(HIDDEN)
    turned = random(1, rows, HEADS + GROUPS, WIDTH).transpose(1, 2)
    cos, sin = random(1, rows, WIDTH), random(1, rows, WIDTH)
    logits = 5 * random(rows, VOCAB)

    def case(kernel: Callable[..., Result], plain: Callable[..., Result], *arguments: object) -> Case:
        name = kernel.__name__
        return Case(name, rows, torch.float32, lambda: kernel(*arguments), lambda: plain(*arguments))

    yield case(rms_norm, reference.rms_norm, x, weight, 1e-5)
    yield case(add_rms_norm, reference.add_rms_norm, x, update, weight, 1e-5)
    yield case(rotary, reference.rotary, turned, cos, sin)
    yield case(unmask, reference.unmask, logits, CANDIDATES)
    dtype = attention_dtype(device)
    query, value = random(1, HEADS, rows, WIDTH).to(dtype), random(1, GROUPS, CONTEXT + rows, WIDTH).to(dtype)
    key = empty_keys(tuple(value.shape), device, dtype).copy_(random(*value.shape))
    mask = torch.ones((rows, CONTEXT + rows), dtype=torch.bool, device=device).tril(CONTEXT)
    folded = fold_mask(mask, HEADS // GROUPS, dtype)

    def plain(mask: Tensor | None = None) -> Kernel:
        return lambda: reference.attention(query, key, value, mask)

    yield Case("attention", rows, dtype, lambda: attention(query, key, value), plain())
    yield Case("attention, masked", rows, dtype, lambda: attention(query, key, value, folded), plain(mask))


def _linear_cases(kernels: NativeKernels) -> Iterator[Case]:
    """The linears in C; their reference has the same weights in float32."""
    generator = torch.Generator().manual_seed(0)
    for part, bits, shapes in (("layer", 8, LAYER), ("layer", 4, LAYER)):
        for name, (out, width) in shapes.items():
            packed, weight = _packed(kernels, torch.randn(out, width, generator=generator), bits)
            for rows in LINEAR_ROWS:
                x = torch.randn(rows, width, generator=generator)
                yield Case(
                    f"{part} {name.rpartition('.')[2]}, {bits} bit",
                    rows,
                    torch.int8,
                    partial(kernels.linear, x, packed),
                    partial(F.linear, x, weight),
                )


def _packed(kernels: NativeKernels, weight: Tensor, bits: int) -> tuple[PackedLinear, Tensor]:
    """A weight in 8 or 4 bit, packed, and in float32."""
    if bits == 4:
        found, none = quantised.quantized(weight), torch.empty((0, weight.shape[1]), dtype=torch.int8)
        blocks = kernels.packed_blocks(found)
        return kernels.bind(kernels.packed(none), torch.empty(0), None, blocks), found.dense()
    codes, scale = quantize_rows(weight)
    return kernels.pack(codes, scale, None), codes * scale[:, None]


def _cost(case: Case, runs: int, device: torch.device) -> KernelCost:
    difference = _difference(case.kernel(), case.plain())
    right = difference <= CLOSE[case.dtype]
    if not runs:
        return KernelCost(case.name, case.rows, None, None, None, difference, right)
    # Kernel and reference take turns, so that a change of the clock rate affects both.
    times = np.array([[_time(call, device) for call in (case.kernel, case.plain)] for _ in range(runs)])
    (p50, plain), (p95, _) = np.percentile(times, [50, 95], axis=0).tolist()
    return KernelCost(case.name, case.rows, p50, p95, plain, difference, right)


def _time(call: Kernel, device: torch.device) -> float:
    """Returns the microseconds of a call, averaged over several calls in a row."""
    _wait(device)
    began = time.perf_counter()
    for _ in range(CALLS):
        call()
    _wait(device)
    return (time.perf_counter() - began) / CALLS * 1e6


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _difference(got: Result, expected: Result) -> float:
    """Returns the largest difference of two results, relative to the greatest value; ids are not compared."""
    gots, expecteds = ((part,) if isinstance(part, Tensor) else part for part in (got, expected))
    return max(
        float((one.double() - other.double()).abs().max() / other.double().abs().max())
        for one, other in zip(gots, expecteds, strict=True)
        if one.is_floating_point()
    )


def table(costs: Sequence[KernelCost], title: str) -> Table:
    """Returns the costs as a table."""
    grid = Table(title=title)
    for name in ("kernel", "rows", "p50 µs", "p95 µs", "reference p50 µs", "times as fast", "difference", "right"):
        grid.add_column(name, justify="left" if name == "kernel" else "right")
    for cost in costs:
        times = ["-"] * 4
        if cost.p50_us and cost.p95_us and cost.reference_p50_us:
            ratio = cost.reference_p50_us / cost.p50_us
            times = [*(f"{us:.1f}" for us in (cost.p50_us, cost.p95_us, cost.reference_p50_us)), f"{ratio:.2f}"]
        grid.add_row(cost.kernel, str(cost.rows), *times, f"{cost.difference:.1e}", "yes" if cost.right else "NO")
    return grid
