"""The command ``kernels``: checks and times the linears in C, in the shapes of a small model's layers.

They are in 8 bit, and as a model that drafts has them in 4.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

import msgspec
import torch
import torch.nn.functional as F
import typer
from tests.benchmarks.figures import Row, percentile, ratio, show
from torch import Tensor

from lacuna_kernels import native, quantised
from lacuna_kernels.native import NativeKernels, PackedLinear
from lacuna_model.commands.program import JsonOption
from lacuna_model.core.errors import RequestError
from lacuna_model.hub import models
from lacuna_model.network.devices import choose_threads
from lacuna_model.network.linear import quantize_rows

# The linears, [out, in]: a layer of Qwen2.5-Coder-0.5B.
LAYER = {"qkv": (1152, 896), "output": (896, 896), "gate_up": (9728, 896), "down": (896, 4864)}
# A pass that verifies a draft has a few rows.
ROWS = (1, 2, 4, 8, 16)
# Number of calls that are timed together.
CALLS = 20
# The largest allowed difference, relative to the greatest value: inputs are rounded to 127 steps.
CLOSE = 2e-2
FAILED = 1


class Case(msgspec.Struct, frozen=True):
    """A call of a kernel, and the same call of its reference in float32."""

    name: str
    rows: int
    kernel: Callable[[], Tensor]
    plain: Callable[[], Tensor]


def cases(kernels: NativeKernels) -> Iterator[Case]:
    """The linears by bits, layer and rows; their reference has the same weights in float32."""
    generator = torch.Generator().manual_seed(0)
    for bits in (8, 4):
        for name, (out, width) in LAYER.items():
            packed, weight = _packed(kernels, torch.randn(out, width, generator=generator), bits)
            for rows in ROWS:
                x = torch.randn(rows, width, generator=generator)
                yield Case(
                    f"{name}, {bits} bit", rows, partial(kernels.linear, x, packed), partial(F.linear, x, weight)
                )


def _packed(kernels: NativeKernels, weight: Tensor, bits: int) -> tuple[PackedLinear, Tensor]:
    """A weight in 8 or 4 bit, packed, and in float32."""
    if bits == 4:
        found, none = quantised.quantized(weight), torch.empty((0, weight.shape[1]), dtype=torch.int8)
        blocks = kernels.packed_blocks(found)
        return kernels.bind(kernels.packed(none), torch.empty(0), None, blocks), found.dense()
    codes, scale = quantize_rows(weight)
    return kernels.pack(codes, scale, None), codes * scale[:, None]


@torch.inference_mode()
def compared(case: Case, runs: int) -> Row:
    """Microseconds of a call of the kernel and of its reference, and their largest difference.

    The difference is relative to the greatest value; *right* is 1 where it is small enough.
    """
    own, plain = case.kernel(), case.plain()
    difference = float((own.double() - plain.double()).abs().max() / plain.double().abs().max())
    # Kernel and reference take turns, so that a change of the clock rate affects both.
    us = [(_time(case.kernel), _time(case.plain)) for _ in range(runs)]
    kernel, reference = ([one[place] for one in us] for place in (0, 1))
    return {
        "kernel": case.name,
        "rows": case.rows,
        "us p50": percentile(kernel, 50),
        "p95": percentile(kernel, 95),
        "torch": percentile(reference, 50),
        "times as fast": ratio(percentile(reference, 50), percentile(kernel, 50)),
        "difference": f"{difference:.1e}",
        "right": int(difference <= CLOSE),
    }


def _time(call: Callable[[], Tensor]) -> float:
    """The microseconds of a call, averaged over several calls in a row."""
    began = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - began) / CALLS * 1e6


def kernels(
    runs: Annotated[int, typer.Option(min=1, help="Time each kernel in this many runs of 20 calls.")] = 50,
    json_output: JsonOption = False,
) -> None:
    """Check that every linear in C computes the right result, and compare its time with torch's in float32.

    Exit with 1 if a result is wrong.
    """
    own = native.load(models.kernels_dir(), choose_threads())
    if own is None:
        raise RequestError("this CPU has none of the instructions that the kernels are for")
    found = [compared(case, runs) for case in cases(own)]
    show(found, json_output)
    if not all(row["right"] for row in found):
        raise typer.Exit(FAILED)
