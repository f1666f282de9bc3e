"""The figures of ``python -m tests.benchmarks speed``: cells, ratios and their table."""

from collections.abc import Sequence
from typing import Literal

import msgspec
from rich.table import Table

State = Literal["warm", "cold"]


class Cell(msgspec.Struct, frozen=True):
    """The latency of one engine for ``tokens`` generated tokens, over ``runs`` runs, in milliseconds."""

    engine: str
    state: State
    tokens: int
    runs: int
    ms_p50: float
    ms_p95: float


class Ratio(msgspec.Struct, frozen=True):
    """The time of the fastest ``peer`` over Lacuna's, of the medians and of the 95th percentiles."""

    state: State
    tokens: int
    peer: str
    p50: float
    p95: float


class BenchReport(msgspec.Struct, frozen=True):
    """The output of ``python -m tests.benchmarks speed --json``.

    ``busy`` means that another process kept a core busy; ``llama_cpp`` names the instructions that it was compiled for.
    """

    context_tokens: int
    threads: int
    busy: bool
    llama_cpp: str
    cells: list[Cell]
    ratios: list[Ratio]


def ratios(cells: Sequence[Cell], ours: str) -> list[Ratio]:
    """Returns the time of the fastest other engine over that of ``ours``, per state and length."""
    found = []
    for own in cells:
        if own.engine == ours:
            others = [one for one in cells if one.engine != ours and (one.state, one.tokens) == (own.state, own.tokens)]
            peer = min(others, key=lambda one: one.ms_p50)
            p50, p95 = round(peer.ms_p50 / own.ms_p50, 2), round(peer.ms_p95 / own.ms_p95, 2)
            found.append(Ratio(own.state, own.tokens, peer.engine, p50, p95))
    return found


def table(report: BenchReport) -> Table:
    """Returns a table with one row per state and length."""
    names = list(dict.fromkeys(cell.engine for cell in report.cells))
    grid = Table(
        title=f"Latency at about {report.context_tokens} tokens of context, {report.threads} threads"
        + (", one core kept busy" if report.busy else ""),
        caption="p50 / p95 ms; the ratio is that of the faster peer. warm: context cached, a character typed since; "
        "cold: context new. llama.cpp reads the same text as a prompt, prompt cache on, and generates left to right. "
        "Forced to a number of tokens, Lacuna runs without its syntax constraint. "
        f"llama.cpp is compiled for {report.llama_cpp}",
    )
    for heading in ("context", "tokens", *names, "ratio p50", "p95"):
        grid.add_column(heading, justify="right")
    by_key = {(cell.engine, cell.state, cell.tokens): cell for cell in report.cells}
    for ratio in sorted(report.ratios, key=lambda ratio: (ratio.state != "warm", ratio.tokens)):
        cells = [by_key[name, ratio.state, ratio.tokens] for name in names]
        times = [f"{cell.ms_p50:,.0f} / {cell.ms_p95:,.0f}" for cell in cells]
        grid.add_row(ratio.state, str(ratio.tokens), *times, f"{ratio.p50:.2f}x", f"{ratio.p95:.2f}x")
    return grid
