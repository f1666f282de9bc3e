"""The command ``speed``: compares the speed with llama.cpp's, with the same weights, text and machine, in turns."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console
from rich.progress import Progress
from tests.benchmarks.engine.busy_core import busy_core
from tests.benchmarks.engine.contexts import Context, Encode, contexts
from tests.benchmarks.engine.peers import Completer, FillerCompleter, LlamaCompleter
from tests.benchmarks.engine.summary import BenchReport, Cell, State, ratios, table
from tests.benchmarks.tasks.llama import LlamaCpp
from tests.benchmarks.tasks.runner import Filler

from lacuna_model.core.errors import LacunaError

LENGTHS = (16, 32, 64)
CONTEXT_TOKENS = 1100
_TYPED = 1  # characters that the user types between two warm completions


class BenchError(LacunaError):
    """A measurement is not comparable."""


def measure(engine: Completer, context: Context, typed: str, num_tokens: int) -> float:
    """Returns the milliseconds of one completion, scaled to ``num_tokens`` tokens.

    Only delivered tokens count: the healed token does not, and tokens may join at the seam of two blocks, so one or two
    tokens may be missing. Raises BenchError if the number is off by more than a quarter.
    """
    started = time.perf_counter()
    generated = engine.complete(context, typed, num_tokens)
    elapsed = (time.perf_counter() - started) * 1000
    if abs(generated - num_tokens) > num_tokens // 4:
        raise BenchError(f"{engine.name} generated {generated} tokens where {num_tokens} were asked for")
    return elapsed * num_tokens / generated


def warm_runs(engines: Sequence[Completer], context: Context, num_tokens: int, runs: int) -> Iterator[list[float]]:
    """Yields the times of all engines per run, for a cached context to which each run adds a typed character."""
    for engine in engines:
        engine.complete(context, "", num_tokens)
        engine.rest(context)
    for run in range(1, runs + 1):
        typed = context.line[: run * _TYPED]
        yield [measure(engine, context, typed, num_tokens) for engine in engines]


def cold_runs(
    engines: Sequence[Completer], fresh: Iterator[Context], num_tokens: int, runs: int
) -> Iterator[list[float]]:
    """Yields the times of all engines per run, for a context that no engine has read."""
    for _ in range(runs):
        context = next(fresh)
        yield [measure(engine, context, "", num_tokens) for engine in engines]


def summarise(engines: Sequence[Completer], state: State, num_tokens: int, times: list[list[float]]) -> list[Cell]:
    """Returns one cell per engine from the times of its runs."""
    columns = np.percentile(np.array(times), [50, 95], axis=0).T
    return [
        Cell(engine.name, state, num_tokens, len(times), round(float(p50), 3), round(float(p95), 3))
        for engine, (p50, p95) in zip(engines, columns, strict=True)
    ]


def bench(
    engines: Sequence[Completer],
    encode: Encode,
    *,
    lengths: Sequence[int] = LENGTHS,
    warm: int = 9,
    cold: int = 5,
    advance: Callable[[str], None] = lambda _: None,
) -> list[Cell]:
    """Measures every engine, warm and cold, for every length; calls ``advance`` after each run."""
    fresh = contexts(encode, CONTEXT_TOKENS)
    cells: list[Cell] = []
    for engine in engines:  # the first call includes lazy initialisation
        engine.complete(next(fresh), "", lengths[0])
    for num_tokens in lengths:
        plans: list[tuple[State, Iterator[list[float]]]] = [
            ("warm", warm_runs(engines, next(fresh), num_tokens, warm)),
            ("cold", cold_runs(engines, fresh, num_tokens, cold)),
        ]
        for state, plan in plans:
            times: list[list[float]] = []
            for row in plan:
                times.append(row)
                advance(f"{state}, {num_tokens} tokens")
            cells += summarise(engines, state, num_tokens, times)
    return cells


def bench_main(
    filler: Filler,
    encode: Encode,
    gguf: Path,
    *,
    drafting: Path | None = None,
    lengths: Sequence[int] = LENGTHS,
    warm: int = 9,
    cold: int = 5,
    threads: int = 2,
    busy: bool = False,
    as_json: bool = False,
) -> BenchReport:
    """The command ``speed``: measures ``filler`` and, with the same ``gguf``, llama.cpp without and with n-gram drafts.

    With a ``drafting`` model it runs with that one's drafts, too. Prints the figures. Raises BenchError, or LacunaError
    if llama-cpp-python is not installed.
    """
    plain = LlamaCpp(gguf, threads=threads)
    peers = {"llama.cpp": plain, "llama.cpp, n-grams": LlamaCpp(gguf, threads=threads, ngrams=True)}
    if drafting is not None:
        peers["llama.cpp, draft model"] = LlamaCpp(gguf, threads=threads, drafting=drafting)
    completers = (LlamaCompleter(name, peer, encode) for name, peer in peers.items())
    engines: list[Completer] = [FillerCompleter(filler), *completers]
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("bench", total=len(lengths) * (warm + cold))

        def advance(what: str) -> None:
            progress.update(task, advance=1, description=what)

        with busy_core() if busy else nullcontext():
            cells = bench(engines, encode, lengths=lengths, warm=warm, cold=cold, advance=advance)
    report = BenchReport(CONTEXT_TOKENS, threads, busy, plain.compiled_for, cells, ratios(cells, filler.name))
    if as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        Console().print(table(report))
    return report
