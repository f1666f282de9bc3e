"""Steps that concern whole models with random weights: times of passes, the profile, and equal bits."""

from collections.abc import Callable
from functools import partial

import torch
from tests.gpu.harness import Place, Report
from tests.gpu.shapes import BANDWIDTH, CONTEXT, ROWS, SHAPES, TINY, filled_arena, num_bytes, plain, reading, tensors
from torch import Tensor

from lacuna_kernels import MAX_ROWS
from lacuna_model.network.arena import Arena
from lacuna_model.network.assembly import build_transformer
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.graphs import cuda_graph
from lacuna_model.network.transformer import PassPart, Transformer

# Milliseconds expected of a pass over one row: on torch's operators, eager, as a graph, as a graph in 8 bit.
PREDICTED = {"1.5B": (10, 6, 1.5, 1.1)}


def pretended(run: Callable[[], None]) -> Callable[[], None]:
    """A graph where there is no GPU: the launches, made again."""
    return run


def fast(place: Place, config: ModelConfig, state: dict[str, Tensor]) -> Transformer:
    """The model with the kernels for GPUs, and graphs."""
    return build_transformer(config, state).on_gpu(pretended if place.pretend else cuda_graph)


def shape(name: str) -> Callable[[Place, Report], None]:
    """The step that times the passes of a model of one shape."""
    return partial(_shape, name)


def _shape(name: str, place: Place, report: Report) -> None:
    config, context = (TINY, 20) if place.pretend else (SHAPES[name], CONTEXT)
    old, eager, graph, eight = PREDICTED[name]
    with torch.inference_mode():
        state = tensors(config, place.device)
        arena = filled_arena(config, place.device, context)
        floor = num_bytes(config) / BANDWIDTH * 1e3
        report.add("floor_ms", floor)
        report.add("floor_ms 8 bit", floor / 2)
        recorded = fast(place, config, state)
        for rows in (1,) if place.pretend else ROWS:
            report.add(f"graph R{rows} ms", place.ms(reading(recorded, arena, rows)), f"{graph:g}" if rows <= 8 else "")
        one = build_transformer(config, state).on_gpu(pretended)
        for rows in (1,) if place.pretend else (1, 8, 64):
            report.add(f"eager R{rows} ms", place.ms(reading(one, arena, rows), 5), f"{eager:g}")
        before = plain(config, state)
        for rows in (1,) if place.pretend else (1, 8, 64):
            report.add(f"torch R{rows} ms", place.ms(reading(before, arena, rows), 5), f"{old:g}")
        _encode(place, report, config, (before, one), context)
        if name == "1.5B" and not place.pretend:
            _profile(report, reading(recorded, arena, 8))
        del state, recorded, one, before
        state = tensors(config, place.device, eight_bit=True)
        recorded = fast(place, config, state)
        for rows in (1,) if place.pretend else (1, 8, 64, 192):
            took = place.ms(reading(recorded, arena, rows))
            report.add(f"graph 8 bit R{rows} ms", took, f"{eight:g}" if rows <= 8 else "")
        if not place.pretend:
            report.add("most_GB", torch.cuda.max_memory_allocated() / 1e9)


def _encode(
    place: Place, report: Report, config: ModelConfig, models: tuple[Transformer, Transformer], context: int
) -> None:
    """Milliseconds for a whole context: in pieces of 128 rows as on a CPU, and in one pass."""
    before, now = models
    arena = Arena(config, place.device, torch.bfloat16)
    arena.reserve(context)

    def pieces() -> None:
        for first in range(0, context, 128):
            arena.tail = first
            reading(before, arena, min(128, context - first))()

    def whole() -> None:
        arena.tail = 0
        reading(now, arena, context, causal=True)()

    report.add(f"encode {context} in pieces ms", place.ms(pieces, 3), "120")
    report.add(f"encode {context} in one pass ms", place.ms(whole, 3), "10 (1.5B)")


def _profile(report: Report, run: Callable[[], Tensor]) -> None:
    """The kernels that take the most time of a pass."""
    run()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(5):
            run()
        torch.cuda.synchronize()
    events = sorted(profile.key_averages(), key=lambda event: -event.self_device_time_total)[:8]
    for event in events:
        each = event.self_device_time_total / max(event.count, 1)
        report.add(
            f"kernel {event.key[:60]}",
            {"us_a_pass": round(event.self_device_time_total / 5, 1), "us": round(each, 2), "n": event.count / 5},
        )


def bits(place: Place, report: Report) -> None:
    """Rows read alone and beside others, bit for bit; and how many logits tie."""
    config, context, total = (TINY, 20, 3) if place.pretend else (SHAPES["1.5B"], CONTEXT, MAX_ROWS)
    with torch.inference_mode():
        model = fast(place, config, tensors(config, place.device))
        alone = _read(model, filled_arena(config, place.device, context), context, total, 1)
        for width in (3,) if place.pretend else (2, 8, 33, 64, 100, 128, MAX_ROWS):
            beside = _read(model, filled_arena(config, place.device, context), context, total, width)
            for name, one, other in zip(("states", "logits", "keys", "values"), alone, beside, strict=True):
                differing = int((one != other).reshape(total, -1).any(-1).sum())
                report.add(f"rows whose {name} differ, {width} at a time", differing, f"0 of {total}")
            moved = int((alone[1].argmax(-1) != beside[1].argmax(-1)).sum())
            report.add(f"rows whose best token differs, {width} at a time", moved, "0")
        best = alone[1].topk(2).values
        report.add("ties in float32", int((best[:, 0] == best[:, 1]).sum()), f"0 of {total}")
        narrow = best.bfloat16()
        report.add(
            "ties if rounded to bfloat16", int((narrow[:, 0] == narrow[:, 1]).sum()), f"about {total // 20} of {total}"
        )


def _read(
    model: Transformer, arena: Arena, first: int, total: int, width: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """States, logits, keys and values of ``total`` rows, each row first, read ``width`` rows at a time."""
    ids = [row * 7919 % model.config.vocab_size for row in range(total)]
    states, logits = list[Tensor](), list[Tensor]()
    for begin in range(0, total, width):
        end = min(begin + width, total)
        arena.tail = first + begin
        mask = torch.ones((end - begin, first + end), dtype=torch.bool).tril(first + begin)
        parts = [PassPart(end - begin, arena, mask)]
        states.append(model.read(ids[begin:end], range(first + begin, first + end), parts).states)
        logits.append(model.head(states[-1]))
    kept = (store[:, :, first : first + total].permute(2, 0, 1, 3) for store in (arena.keys, arena.values))
    keys, values = (part.clone() for part in kept)
    return torch.cat(states), torch.cat(logits), keys, values
