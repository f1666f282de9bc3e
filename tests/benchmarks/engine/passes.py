"""The command ``passes``: times forward passes by their number of rows, and the encoding of the context."""

import time
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import torch
from rich.table import Table
from tests.benchmarks.engine.contexts import contexts

from lacuna_model.backends.readers import Loaded, opening
from lacuna_model.core.context import Layout, lay_out
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.tracks import Chain, Track, TrackReader, read_together

ROWS = (1, 2, 4, 8, 16, 32)
# Passes that several documents share have so many rows of each.
DOCUMENTS, ROWS_EACH = (2, 4, 8), (1, 4)


class PassCost(msgspec.Struct, frozen=True):
    """Milliseconds of encoding the context (``rows`` 0), or of a pass over ``rows`` rows with its logits.

    The rows are evenly those of so many ``documents``, each with a context of that length.
    """

    rows: int
    documents: int
    context_tokens: int
    ms_p50: float
    ms_p95: float


def bench_passes(model: Loaded, *, context_tokens: int = 1024, runs: int = 15) -> list[PassCost]:
    """Times the encoding of a context of real code, and passes over a gap in it.

    Raises RequestError for an open checkpoint.
    """
    context = next(contexts(model.tokenizer.encode, context_tokens))
    request = InfillRequest("", (), path="bench.py")
    texts = (context.before, context.after)
    layout = lay_out(texts, model.tokenizer, opening(model, request))
    if not isinstance(model, LoadedFim):
        raise RequestError("what a pass of an open checkpoint costs depends on all of the text")
    return _passes(model, layout, runs)


@torch.inference_mode()
def _passes(model: LoadedFim, layout: Layout, runs: int) -> list[PassCost]:
    """Times passes that verify drafts of several lengths."""

    def encoded() -> tuple[FimContext, int]:
        context = FimContext(model.tracks(), model.tokenizer, model.fim.suffix)
        total = context.update(layout).total
        context.reader.read([context.chain(0)])
        return context, total

    context, total = encoded()
    costs = [_cost(0, 1, total, encoded, max(runs // 3, 1))]
    several = [context, *(encoded()[0] for _ in range(DOCUMENTS[-1] - 1))]
    shapes = [(1, rows) for rows in ROWS] + [(documents, rows) for documents in DOCUMENTS for rows in ROWS_EACH]
    for documents, rows in shapes:
        verify = _verification(model, several[:documents], rows)
        costs.append(_cost(documents * rows, documents, total, verify, runs))
    return costs


def _verification(model: LoadedFim, contexts: Sequence[FimContext], rows: int) -> Callable[[], None]:
    """A pass over ``rows`` rows of each context."""
    wanted: list[tuple[TrackReader, list[Chain]]] = []
    for context in contexts:
        chain, track = context.chain(0), Track()
        track.become([model.fim.middle] * rows, sum(len(one.ids) for one in chain))
        wanted.append((context.reader, [[*chain, track]]))

    def verify() -> None:
        for _, ((*_, track),) in wanted:
            track.forget_from(0)
        found = read_together(model.transformer, wanted)
        model.transformer.head(torch.cat([hidden for own in found for hidden in own.values()]))

    return verify


def _cost(rows: int, documents: int, context_tokens: int, work: Callable[[], object], runs: int) -> PassCost:
    work()
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1e3)
    p50, p95 = np.percentile(times, [50, 95])
    return PassCost(rows, documents, context_tokens, float(p50), float(p95))


def table(costs: Sequence[PassCost]) -> Table:
    """Returns the costs as a table."""
    grid = Table(title=f"Passes with {costs[0].context_tokens} tokens of context")
    for name in ("what", "p50 ms", "p95 ms"):
        grid.add_column(name, justify="left" if name == "what" else "right")
    for cost in costs:
        whose = f" of {cost.documents} documents" if cost.documents > 1 else ""
        what = f"pass over {cost.rows} rows{whose}" if cost.rows else "encode the context"
        grid.add_row(what, f"{cost.ms_p50:.1f}", f"{cost.ms_p95:.1f}")
    return grid
