"""The command ``passes``: times forward passes by their number of rows, and the encoding of the context."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import torch
from rich.table import Table
from tests.benchmarks.engine.contexts import contexts
from torch import Tensor

from lacuna_model.backends.readers import Loaded, opening
from lacuna_model.core.context import lay_out
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.track import Chain, Track
from lacuna_model.fim.tracks import TrackReader, read_together

ROWS = (1, 2, 4, 8, 16, 32)
# Passes that several documents share have so many rows of each.
DOCUMENTS, ROWS_EACH = (2, 4, 8), (1, 4)


class Work(NamedTuple):
    """What is timed: encoding a context (``rows`` 0), or a pass over rows of so many documents, with their logits."""

    rows: int
    documents: int
    run: Callable[[], object]


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
    with torch.inference_mode():
        total, all_work = works(model, context_tokens)
        return [_cost(work, total, runs if work.rows else max(runs // 3, 1)) for work in all_work]


def works(
    model: Loaded, context_tokens: int, rows: Sequence[int] = ROWS, documents: Sequence[int] = DOCUMENTS
) -> tuple[int, list[Work]]:
    """The length of a context of real code, and what there is to time: its encoding, and passes that verify drafts.

    They have so many ``rows``; some are shared by so many ``documents``. Raises RequestError for an open checkpoint.
    """
    context = next(contexts(model.tokenizer.encode, context_tokens))
    request = InfillRequest("", (), path="bench.py")
    texts = (context.before, context.after)
    layout = lay_out(texts, model.tokenizer, opening(model, request))
    if not isinstance(model, LoadedFim):
        raise RequestError("what a pass of an open checkpoint costs depends on all of the text")

    def encoded() -> tuple[FimContext, int]:
        context = FimContext(model.tracks(), model.tokenizer, model.fim.suffix)
        total = context.update(layout).total
        context.reader.read([context.chain(0)])
        return context, total

    first, total = encoded()
    several = [first, *(encoded()[0] for _ in range(max(documents, default=1) - 1))]
    shapes = [(1, count) for count in rows] + [(count, each) for count in documents for each in ROWS_EACH]
    return total, [
        Work(0, 1, encoded),
        *(Work(count * each, count, _verification(model, several[:count], each)) for count, each in shapes),
    ]


def _verification(model: LoadedFim, contexts: Sequence[FimContext], rows: int) -> Callable[[], Tensor]:
    """A pass over ``rows`` rows of each context."""
    wanted: list[tuple[TrackReader, list[Chain]]] = []
    for context in contexts:
        chain, track = context.chain(0), Track()
        track.become([model.fim.middle] * rows, sum(len(one.ids) for one in chain))
        wanted.append((context.reader, [[*chain, track]]))

    def verify() -> Tensor:
        for _, ((*_, track),) in wanted:
            track.forget_from(0)
        found = read_together(model.transformer, wanted)
        return model.transformer.head(torch.cat([hidden for own in found for hidden in own.values()]))

    return verify


def _cost(work: Work, context_tokens: int, runs: int) -> PassCost:
    work.run()
    p50, p95 = np.percentile([milliseconds(work) for _ in range(runs)], [50, 95])
    return PassCost(work.rows, work.documents, context_tokens, float(p50), float(p95))


def milliseconds(work: Work) -> float:
    """How long it takes."""
    started = time.perf_counter()
    work.run()
    return (time.perf_counter() - started) * 1e3


def name_of(rows: int, documents: int) -> str:
    """What a table calls a work."""
    whose = f" of {documents} documents" if documents > 1 else ""
    return f"pass over {rows} rows{whose}" if rows else "encode the context"


def table(costs: Sequence[PassCost]) -> Table:
    """Returns the costs as a table."""
    grid = Table(title=f"Passes with {costs[0].context_tokens} tokens of context")
    for name in ("what", "p50 ms", "p95 ms"):
        grid.add_column(name, justify="left" if name == "what" else "right")
    for cost in costs:
        grid.add_row(name_of(cost.rows, cost.documents), f"{cost.ms_p50:.1f}", f"{cost.ms_p95:.1f}")
    return grid
