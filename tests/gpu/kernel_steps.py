"""Steps that concern the machine and single kernels: rates, errors against the references, times."""

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
import triton
from tests.gpu.harness import Place, Report
from tests.gpu.shapes import CONTEXT, SHAPES, TINY, filled_arena
from torch import Tensor

from lacuna_kernels import MAX_ROWS, attention, reference
from lacuna_kernels.gpu.attend import attend
from lacuna_kernels.gpu.elementwise import add_rms_norm, gate, rms_norm, rotary
from lacuna_kernels.gpu.heads import RowPlaces, place_heads
from lacuna_kernels.gpu.product import product
from lacuna_kernels.gpu.unmask import unmask
from lacuna_model.network.gpu_layers import ArenaRows, placed
from lacuna_model.network.linear import quantize_rows

EPS = 1e-6


def machine(place: Place, report: Report) -> None:
    """Versions, and the two rates that bound everything: of memory and of products."""
    report.add("python", sys.version.split()[0])
    report.add("torch", torch.__version__)
    report.add("triton", triton.__version__)
    if not place.pretend:
        about = torch.cuda.get_device_properties(0)
        report.add("device", about.name)
        report.add("processors", about.multi_processor_count)
        report.add("L2_MB", round(about.L2_cache_size / 1e6))
    size = 1 << (16 if place.pretend else 30)
    source = torch.randint(0, 100, (size,), dtype=torch.uint8, device=place.device)
    target = torch.empty_like(source)
    us = place.us(lambda: target.copy_(source))
    report.add("copy_GB_s", 2 * size / us / 1e3, "3000")
    width = 64 if place.pretend else 8192
    left, right = (torch.randn((width, width), device=place.device).bfloat16() for _ in range(2))
    us = place.us(lambda: left @ right)
    report.add("product_TFLOP_s", 2 * width**3 / us / 1e6, "790")


def kernels(place: Place, report: Report) -> None:
    """Errors of every kernel against its reference on fresh inputs, and its time in the shapes of the 1.5B."""
    config = TINY if place.pretend else SHAPES["1.5B"]
    seed = time.time_ns() % 1_000_000
    report.add("seed", seed)
    generator = torch.Generator(place.device).manual_seed(seed)

    def random(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        return torch.randn(shape, generator=generator, device=place.device).to(dtype)

    def check(name: str, run: Callable[[], object], expected: object, most: float) -> None:
        try:
            torch.use_deterministic_algorithms(True, warn_only=True)  # what a kernel does not write is NaN
            got = run()
            torch.use_deterministic_algorithms(False)
            pairs = zip(_tensors(got), _tensors(expected), strict=True)
            error = max(float((one.double() - other.double()).norm() / other.double().norm()) for one, other in pairs)
            report.add(
                name,
                {"error": float(f"{error:.3g}"), "us": round(place.us(run), 2), "ok": error < most},
                f"error < {most:g}",
            )
        except Exception as failure:
            report.add(name, f"{type(failure).__name__}: {failure}"[:600])

    hidden, inner, width = config.hidden_size, config.intermediate_size, config.head_dim
    heads, groups = config.num_heads, config.num_kv_heads
    for rows in (2,) if place.pretend else (1, 8, 64, MAX_ROWS):
        x, weight, update = random(rows, hidden), random(hidden, dtype=torch.float32), random(3, rows, hidden)
        check(f"rms_norm R{rows}", partial(rms_norm, x, weight, EPS), reference.rms_norm(x, weight, EPS), 1e-2)
        check(
            f"add_rms_norm R{rows}",
            partial(add_rms_norm, x, update.float(), weight, EPS),
            reference.add_rms_norm(x.float(), update.float().sum(0), weight, EPS),
            1e-2,
        )
        turned, angles = random(1, heads, rows, width, dtype=torch.float32), random(2, rows, width, dtype=torch.float32)
        check(f"rotary R{rows}", partial(rotary, turned, *angles), reference.rotary(turned, *angles), 1e-5)
        states = random(3, rows, 2 * inner, dtype=torch.float32)
        check(f"gate R{rows}", partial(gate, states, torch.bfloat16), reference.gate(states.sum(0)), 1e-2)
        logits = random(rows, config.vocab_size, dtype=torch.float32)
        check(f"unmask R{rows}", partial(_likelihoods, logits), reference.unmask(logits, 8)[1:], 1e-4)
        stacked = (heads + 2 * groups) * width
        for outputs, inputs in ((stacked, hidden), (2 * inner, hidden), (hidden, inner)):
            read, matrix = random(rows, inputs), random(outputs, inputs)
            codes, scale = quantize_rows(matrix.float())
            shape = f"{outputs}x{inputs} R{rows}"
            check(f"product {shape}", partial(_summed, read, matrix), reference.product(read, matrix), 1e-4)
            wanted = reference.product(read, codes, scale)
            check(f"product 8 bit {shape}", partial(_summed, read, codes, scale), wanted, 1e-4)
        _check_attention(place, rows, check, random)
    _check_causal(config.num_heads, config.num_kv_heads, config.head_dim, check, random)
    report.add("bits", _same_bits(config, random), "0 rows differ")


def _check_attention(place: Place, rows: int, check: Callable[..., None], random: Callable[..., Tensor]) -> None:
    config = TINY if place.pretend else SHAPES["1.5B"]
    tail = 20 if place.pretend else CONTEXT
    heads, groups, width = config.num_heads, config.num_kv_heads, config.head_dim
    arena = filled_arena(config, place.device, tail)
    mask = torch.rand((rows, tail + rows), device=place.device) < 0.7
    mask[:, 0] = True
    found = placed([ArenaRows(rows, arena, mask)])
    data = torch.from_numpy(found.numbers).to(place.device)
    placement = RowPlaces(data, heads, groups, width, torch.bfloat16)
    states = random(2, rows, (heads + 2 * groups) * width, dtype=torch.float32)
    bias, angles = random(states.shape[2]), random(2, 8192, width, dtype=torch.float32)
    positions = torch.arange(tail, tail + rows, device=place.device)

    def stored() -> tuple[Tensor, Tensor, Tensor]:
        query = place_heads(states, bias, None, (angles[0], angles[1]), positions, placement, 0)
        own = slice(tail, tail + rows)
        return query, arena.keys[0, :, own].transpose(0, 1), arena.values[0, :, own].transpose(0, 1)

    turned = angles[0][positions], angles[1][positions]
    check(f"heads R{rows}", stored, reference.heads(states.sum(0), bias, None, turned, groups), 1e-2)
    query = random(rows, heads, width)
    mixed = reference.attention(
        query.transpose(0, 1)[None].float(),
        *(store[None, 0, :, : tail + rows].float() for store in (arena.keys, arena.values)),
        mask,
    )
    check(
        f"attend R{rows}",
        lambda: attend(query, placement, (angles[0], angles[1]), 0, found.most),
        mixed[0].transpose(0, 1),
        2e-2,
    )


def _check_causal(
    heads: int, groups: int, width: int, check: Callable[..., None], random: Callable[..., Tensor]
) -> None:
    for rows, keys in ((70, 70), (70, 90)):
        query, key, value = random(1, heads, rows, width), *random(2, 1, groups, keys, width)
        mask = torch.ones((rows, keys), dtype=torch.bool, device=query.device).tril(keys - rows)
        expected = reference.attention(query.float(), key.float(), value.float(), mask)
        check(f"causal {rows} of {keys}", partial(attention, query, key, value, causal=True), expected, 2e-2)


def _same_bits(config: object, random: Callable[..., Tensor]) -> str:
    """How many rows of a product differ in a bit from those read beside fewer others."""
    shape = (96, 80) if config is TINY else (1536, 8960)
    matrix, x = random(*shape), random(MAX_ROWS, shape[1])
    every = product(x, matrix)
    differing = sum(
        int((product(x[first : first + rows], matrix) != every[:, first : first + rows]).any(dim=(0, 2)).sum())
        for rows in (1, 2, 8, 17, 32, 64, 100)
        for first in (0, 5, MAX_ROWS - rows)
    )
    return f"{differing} rows differ"


def products(place: Place, report: Report) -> None:
    """Products beside torch's: microseconds, and GB a second of the weight."""
    shapes = [(96, 80)] if place.pretend else [(17920, 1536), (1536, 8960), (2048, 1536), (37888, 3584)]
    for outputs, inputs in shapes:
        copies = 1 if place.pretend else max(1, 160_000_000 // (2 * outputs * inputs))
        weights = [torch.randn((outputs, inputs), device=place.device).bfloat16() for _ in range(copies)]
        codes = [(weight * 30).clamp(-127, 127).to(torch.int8) for weight in weights]
        scale = torch.rand(outputs, device=place.device)
        for rows in (1,) if place.pretend else (8, 64, MAX_ROWS):
            x = torch.randn((rows, inputs), device=place.device).bfloat16()
            size = 2 * outputs * inputs

            add = partial(_add_rate, place, report, f"{outputs}x{inputs} R{rows}")
            add("torch", [partial(F.linear, x, weight) for weight in weights], size)
            add("ours", [partial(product, x, weight) for weight in weights], size)
            add("ours 8 bit", [partial(product, x, code, scale) for code in codes], size // 2)


def _add_rate(
    place: Place, report: Report, shape: str, name: str, runs: Sequence[Callable[[], object]], read: int
) -> None:
    """The time of a product; all copies of the weight are read in turn, so that the cache holds none of them."""
    try:
        us = place.us(lambda: [run() for run in runs]) / len(runs)
        report.add(f"{shape} {name}", {"us": round(us, 2), "GB_s": round(read / us / 1e3)})
    except Exception as failure:
        report.add(f"{shape} {name}", f"{type(failure).__name__}: {failure}"[:300])


def _tensors(found: object) -> list[Tensor]:
    return [found] if isinstance(found, Tensor) else list(found)  # type: ignore[call-overload]


def _summed(x: Tensor, weight: Tensor, scale: Tensor | None = None) -> Tensor:
    return product(x, weight, scale).sum(0)


def _likelihoods(logits: Tensor) -> tuple[Tensor, ...]:
    """What unmask finds besides the ids, whose order is free where logits tie."""
    return unmask(logits, 8)[1:]
