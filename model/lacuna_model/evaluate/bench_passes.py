"""``lacuna bench passes``: what one forward pass costs, by slots, and what encoding the context costs."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import numpy as np
from rich.table import Table

from lacuna_model.canvas import Canvas
from lacuna_model.context import lay_out
from lacuna_model.evaluate.bench_contexts import contexts
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.two_sided import TwoSidedModel

SLOTS = (4, 8, 16, 32)


class PassCost(msgspec.Struct, frozen=True):
    """Times in milliseconds: the context's encoding where ``slots`` is 0, else a canvas pass with its unmasking."""

    slots: int
    context_tokens: int
    ms_p50: float
    ms_p95: float


def bench_passes(model: LoadedModel, *, context_tokens: int = 1024, runs: int = 15) -> list[PassCost]:
    """The cost of encoding a context of real code anew, and of passes over one gap in it without guidance."""
    context = next(contexts(model.tokenizer.encode, context_tokens))
    layout = lay_out((context.before, context.after), model.tokenizer, reserve=lambda _: 256, hole=0)

    def encode() -> int:
        return ContextCache(model.base, dtype=model.cache_dtype).update(layout).total

    total = encode()
    costs = [_cost(0, total, encode, runs)]
    cache = ContextCache(model.base, dtype=model.cache_dtype)
    cache.update(layout)
    reader = TwoSidedModel(
        model,
        cache,
        layout,
        guidance=0.0,
    )
    for slots in SLOTS:
        canvas = Canvas(layout.gaps[0], block_size=slots, budget=slots)
        canvas.open_block()
        costs.append(_cost(slots, total, partial(reader.read, [canvas]), runs))
    return costs


def _cost(slots: int, context_tokens: int, work: Callable[[], object], runs: int) -> PassCost:
    work()
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1e3)
    p50, p95 = np.percentile(times, [50, 95])
    return PassCost(slots, context_tokens, float(p50), float(p95))


def table(costs: Sequence[PassCost]) -> Table:
    """The costs as a table."""
    grid = Table(title=f"Passes with {costs[0].context_tokens} tokens of context")
    for name in ("what", "p50 ms", "p95 ms"):
        grid.add_column(name, justify="left" if name == "what" else "right")
    for cost in costs:
        what = f"pass over {cost.slots} slots" if cost.slots else "encode the context"
        grid.add_row(what, f"{cost.ms_p50:.1f}", f"{cost.ms_p95:.1f}")
    return grid
