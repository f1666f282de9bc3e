"""``lacuna bench passes``: what one forward pass costs, by slots, and what encoding the context costs."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import numpy as np
import torch
from rich.table import Table

from lacuna_model.canvas import Canvas
from lacuna_model.context import Layout, lay_out
from lacuna_model.errors import RequestError
from lacuna_model.evaluate.bench_contexts import contexts
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.tracks import Track
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.params import InfillRequest
from lacuna_model.readers import Loaded, opening
from lacuna_model.two_sided import TwoSidedModel
from lacuna_model.whole_sequence import LoadedCheckpoint

SLOTS = (4, 8, 16, 32)
ROWS = (1, 2, 4, 8, 16, 32)


class PassCost(msgspec.Struct, frozen=True):
    """Times in milliseconds: the context's encoding where ``slots`` is 0, else a pass over so many, with its logits."""

    slots: int
    context_tokens: int
    ms_p50: float
    ms_p95: float


def bench_passes(model: Loaded, *, context_tokens: int = 1024, runs: int = 15) -> list[PassCost]:
    """The cost of encoding a context of real code anew, and of passes over one gap in it."""
    context = next(contexts(model.tokenizer.encode, context_tokens))
    request = InfillRequest("", (), path="bench.py")
    texts = (context.before, context.after)
    layout = lay_out(texts, model.tokenizer, reserve=lambda _: 256, hole=0, opening=opening(model, request))
    match model:
        case LoadedFim():
            return _fim_passes(model, layout, runs)
        case LoadedModel():
            return _canvas_passes(model, layout, runs)
        case LoadedCheckpoint():
            raise RequestError("what a pass of an open checkpoint costs depends on all of the text")


def _canvas_passes(model: LoadedModel, layout: Layout, runs: int) -> list[PassCost]:
    """Passes of the canvas side, without guidance."""

    def encode() -> int:
        return ContextCache(model.base, dtype=model.cache_dtype).update(layout).total

    total = encode()
    costs = [_cost(0, total, encode, runs)]
    cache = ContextCache(model.base, dtype=model.cache_dtype)
    cache.update(layout)
    reader = TwoSidedModel(model, cache, layout, guidance=0.0)
    for slots in SLOTS:
        canvas = Canvas(layout.gaps[0], block_size=slots, budget=slots)
        canvas.open_block()
        costs.append(_cost(slots, total, partial(reader.read, [canvas]), runs))
    return costs


@torch.inference_mode()
def _fim_passes(model: LoadedFim, layout: Layout, runs: int) -> list[PassCost]:
    """Passes that verify a draft of so many tokens."""

    def encoded() -> tuple[FimContext, int]:
        context = FimContext(model.transformer, model.tokenizer, model.cache_dtype)
        total = context.update(layout).total
        context.reader.read([context.chain(0)])
        return context, total

    context, total = encoded()
    costs = [_cost(0, total, encoded, max(runs // 3, 1))]
    reader, chain = context.reader, context.chain(0)
    for rows in ROWS:
        track = reader.new()
        track.become([model.fim.middle] * rows, sum(len(one.ids) for one in chain))

        def verify(track: Track = track) -> None:
            track.forget_from(0)
            reader.logits(reader.read([[*chain, track]])[track])

        costs.append(_cost(rows, total, verify, runs))
        reader.drop(track)
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
