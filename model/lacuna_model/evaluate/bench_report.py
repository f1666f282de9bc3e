"""The bench's figures: cells, ratios and their table."""

from collections.abc import Sequence
from typing import Literal

import msgspec
from rich.table import Table

State = Literal["warm", "cold"]


class Cell(msgspec.Struct, frozen=True):
    """Latency of one engine for ``tokens`` generated tokens over ``runs`` runs; milliseconds."""

    engine: str
    state: State
    tokens: int
    runs: int
    ms_p50: float
    ms_p95: float


class Ratio(msgspec.Struct, frozen=True):
    """How many times as long as Lacuna llama.cpp takes, by medians and by 95th percentiles."""

    state: State
    tokens: int
    p50: float
    p95: float


class BenchReport(msgspec.Struct, frozen=True):
    """What ``lacuna bench --json`` prints; ``busy`` says that another process kept a core busy."""

    context_tokens: int
    threads: int
    busy: bool
    cells: list[Cell]
    ratios: list[Ratio]


def ratios(cells: Sequence[Cell], ours: str, peer: str) -> list[Ratio]:
    """``peer``'s time over ``ours``, per state and length."""
    by_key = {(cell.engine, cell.state, cell.tokens): cell for cell in cells}
    return [
        Ratio(
            cell.state,
            cell.tokens,
            round(by_key[peer, cell.state, cell.tokens].ms_p50 / cell.ms_p50, 2),
            round(by_key[peer, cell.state, cell.tokens].ms_p95 / cell.ms_p95, 2),
        )
        for cell in cells
        if cell.engine == ours
    ]


def table(report: BenchReport) -> Table:
    """The figures beside each other: one row per state and length."""
    names = list(dict.fromkeys(cell.engine for cell in report.cells))
    grid = Table(
        title=f"Latency at about {report.context_tokens} tokens of context, {report.threads} threads"
        + (", one core kept busy" if report.busy else ""),
        caption="warm: context cached, a few characters typed since; cold: context new. llama.cpp reads the same text "
        "as a prompt, prompt cache on, and generates left to right. Forced to a number of tokens, Lacuna runs without "
        "its syntax constraint.",
    )
    percentiles = [f"{name} {percentile}" for name in names for percentile in ("p50", "p95")]
    for heading in ("context", "tokens", *percentiles, "ratio p50", "p95"):
        grid.add_column(heading, justify="right")
    by_key = {(cell.engine, cell.state, cell.tokens): cell for cell in report.cells}
    for ratio in sorted(report.ratios, key=lambda ratio: (ratio.state != "warm", ratio.tokens)):
        cells = [by_key[name, ratio.state, ratio.tokens] for name in names]
        times = [f"{ms:.0f} ms" for cell in cells for ms in (cell.ms_p50, cell.ms_p95)]
        grid.add_row(ratio.state, str(ratio.tokens), *times, f"{ratio.p50:.2f}x", f"{ratio.p95:.2f}x")
    return grid
