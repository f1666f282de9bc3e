"""The command ``kernels``: compares every kernel with its plain-torch reference on the available device.

Without a GPU, Triton's interpreter runs its kernels: this checks their results and not their speed. The linears in C
are checked and timed there, in the shapes of a small model's layers, in 8 bit and as a draft model in 4.
"""

import os
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

from lacuna_kernels import attention, attention_dtype, empty_keys, fold_mask, gpu, native, quantised, reference
from lacuna_kernels.native import NativeKernels, PackedLinear
from lacuna_model.commands.options import JsonOption
from lacuna_model.core.errors import RequestError
from lacuna_model.hub import models
from lacuna_model.network.devices import choose_device, choose_threads
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
FAILED = 1


class Case(msgspec.Struct, frozen=True):
    """A call of a kernel, and the same call of its reference; ``dtype`` is what the kernel computes in."""

    name: str
    rows: int
    dtype: torch.dtype
    kernel: Kernel
    plain: Kernel


@torch.inference_mode()
def measure(device: torch.device, *, runs: int, linears: NativeKernels | None = None) -> list[Row]:
    """The microseconds of a call of every kernel and its reference, for several numbers of rows, and their difference.

    The largest difference is relative to the greatest value; *right* is 1 where it is small enough. What is not timed
    takes 0: on a CPU all but the ``linears`` in C. Raises RequestError if Triton's kernels are not available.
    """
    on_gpu = device.type == "cuda"
    if not on_gpu:
        os.environ["TRITON_INTERPRET"] = "1"  # Triton reads it at its first import
    if failure := gpu.triton_failure():
        raise RequestError(f"Triton's kernels cannot be had, see `lacuna doctor`: {failure}")
    rows = ROWS if on_gpu else INTERPRETED_ROWS
    found = [compared(case, runs if on_gpu else 0, device) for count in rows for case in _cases(count, device)]
    return found + [compared(case, runs, device) for case in (_linear_cases(linears) if linears else ())]


def compared(case: Case, runs: int, device: torch.device) -> Row:
    """A case's row, of which so many ``runs`` are timed."""
    difference = _difference(case.kernel(), case.plain())
    # Kernel and reference take turns, so that a change of the clock rate affects both.
    us = [(_time(case.kernel, device), _time(case.plain, device)) for _ in range(runs)]
    own, plain = [one for one, _ in us], [other for _, other in us]
    return {
        "kernel": case.name,
        "rows": case.rows,
        "us p50": percentile(own, 50),
        "p95": percentile(own, 95),
        "reference": percentile(plain, 50),
        "times as fast": ratio(percentile(plain, 50), percentile(own, 50)),
        "difference": f"{difference:.1e}",
        "right": int(difference <= CLOSE[case.dtype]),
    }


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
    for bits in (8, 4):
        for name, (out, width) in LAYER.items():
            packed, weight = _packed(kernels, torch.randn(out, width, generator=generator), bits)
            for rows in LINEAR_ROWS:
                x = torch.randn(rows, width, generator=generator)
                own, plain = partial(kernels.linear, x, packed), partial(F.linear, x, weight)
                yield Case(f"layer {name}, {bits} bit", rows, torch.int8, own, plain)


def _packed(kernels: NativeKernels, weight: Tensor, bits: int) -> tuple[PackedLinear, Tensor]:
    """A weight in 8 or 4 bit, packed, and in float32."""
    if bits == 4:
        found, none = quantised.quantized(weight), torch.empty((0, weight.shape[1]), dtype=torch.int8)
        blocks = kernels.packed_blocks(found)
        return kernels.bind(kernels.packed(none), torch.empty(0), None, blocks), found.dense()
    codes, scale = quantize_rows(weight)
    return kernels.pack(codes, scale, None), codes * scale[:, None]


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


def kernels(
    device: Annotated[str, typer.Option(help="Use cpu, cuda or cuda:N; by default a GPU if there is one.")] = "",
    runs: Annotated[int, typer.Option(min=1, help="Time each kernel in this many runs of 20 calls.")] = 50,
    json_output: JsonOption = False,
) -> None:
    """Check that every kernel computes the right result, and compare its time with torch's.

    On a CPU Triton's kernels are interpreted and not timed. Exit with 1 if a result is wrong.
    """
    place = choose_device(device)
    own = native.load(models.kernels_dir(), choose_threads()) if place.type == "cpu" else None
    found = measure(place, runs=runs, linears=own)
    with_flash = place.type == "cuda" and gpu.flash_attention() is not None
    show(found, json_output, f"Kernels on {place}, {'with' if with_flash else 'without'} flash-attn")
    if not all(row["right"] for row in found):
        raise typer.Exit(FAILED)


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("kernels")(kernels)
