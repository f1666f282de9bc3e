"""The command ``passes``: times forward passes by their number of rows, and the encoding of the context."""

import time
from collections.abc import Callable
from typing import Annotated

import torch
import typer
from tests.benchmarks.engine.contexts import contexts
from tests.benchmarks.figures import Row, show, times
from torch import Tensor

from lacuna_model.backends.readers import Loaded, load, opening
from lacuna_model.commands.options import JsonOption
from lacuna_model.core.context import lay_out
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.track import Track
from lacuna_model.fim.tracks import read_together
from lacuna_model.hub.models import DEFAULT_MODEL
from training.options import ModelOption, ThreadsOption

ROWS = (1, 2, 4, 8, 16, 32)


def measure(model: Loaded, *, context_tokens: int = 1024, runs: int) -> list[Row]:
    """Times the encoding of a context of real code, and passes over a gap in it that verify drafts.

    Raises RequestError for an open checkpoint.
    """
    if not isinstance(model, LoadedFim):
        raise RequestError("what a pass of an open checkpoint costs depends on all of the text")
    code = next(contexts(model.tokenizer.encode, context_tokens))
    layout = lay_out((code.before, code.after), model.tokenizer, opening(model, InfillRequest("", (), path="bench.py")))

    def encoded() -> FimContext:
        context = FimContext(model.tracks(), model.tokenizer, model.fim.suffix)
        context.update(layout)
        context.reader.read([context.chain(0)])
        return context

    with torch.inference_mode():
        context = encoded()
        found: list[Row] = [{"what": "encode the context", **_timed(encoded, max(runs // 3, 1))}]
        for rows in ROWS:
            found.append({"what": f"pass over {rows} rows", **_timed(_verification(model, context, rows), runs)})
    return found


def _verification(model: LoadedFim, context: FimContext, rows: int) -> Callable[[], Tensor]:
    """A pass over so many rows, with their logits."""
    chain, track = context.chain(0), Track()
    track.become([model.fim.middle] * rows, sum(len(one.ids) for one in chain))

    def verify() -> Tensor:
        track.forget_from(0)
        (found,) = read_together(model.transformer, [(context.reader, [[*chain, track]])])
        return model.transformer.head(torch.cat(list(found.values())))

    return verify


def _timed(run: Callable[[], object], runs: int) -> Row:
    run()
    ms: list[float] = []
    for _ in range(runs):
        started = time.perf_counter()
        run()
        ms.append((time.perf_counter() - started) * 1e3)
    return times(ms)


def passes(
    threads: ThreadsOption = 0,
    runs: Annotated[int, typer.Option(min=1, help="Repeat each measurement this many times.")] = 15,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Time single forward passes by their number of rows, and the encoding of 1,024 tokens of context."""
    show(measure(load(model, threads=threads), runs=runs), json_output)


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("passes")(passes)
