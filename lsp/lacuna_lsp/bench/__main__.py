"""Starts a service for the measurement and runs both benchmarks; ``lacuna bench lsp`` runs this module."""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from lacuna_lsp.bench.latency import Cell, measure
from lacuna_lsp.bench.replay import Replay, Rhythm, replay
from lacuna_lsp.bench.service import service
from lacuna_model.core.errors import LacunaError
from lacuna_model.hub.models import DEFAULT_MODEL

FAILED = 1


class Report(msgspec.Struct, frozen=True):
    """The results of both benchmarks."""

    latency: list[Cell]
    replay: list[Replay]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the results and returns the exit code."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lacuna-bench-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder  # apart from the user's own service
        try:
            report = asyncio.run(_run(options))
        except LacunaError as error:
            print(error, file=sys.stderr)
            return FAILED
    if options.json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        Console().print(*(table(rows) for rows in (report.latency, report.replay) if rows), sep="\n\n")
    return 0


def table(rows: Sequence[msgspec.Struct]) -> Table:
    """Returns the table of the results: one line per result, one column per field."""
    shown = Table(box=None, pad_edge=False)
    for name in rows[0].__struct_fields__:
        shown.add_column(name.replace("_", " "), justify="left" if name in ("what", "file", "plugin") else "right")
    for row in rows:
        values = msgspec.structs.astuple(row)
        shown.add_row(
            *("" if value is None else f"{value:,}" if not isinstance(value, str) else value for value in values)
        )
    return shown


async def _run(options: argparse.Namespace) -> Report:
    def advance(what: str) -> None:
        print(what, file=sys.stderr)

    async with service(options.model) as address:
        latency = []
        if options.documents:
            latency = await measure(options.documents, busy=options.busy, advance=advance)
        replayed = await replay(
            options.replay,
            Rhythm(options.interval_ms, options.pause_ms, options.keys),
            metrics_url=f"{address.url}/metrics",
            advance=advance,
        )
        return Report(latency, replayed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lacuna bench lsp", description="Time the language server.")
    parser.add_argument(
        "--documents",
        type=int,
        default=5,
        help="type into this many texts of about 1,000 tokens; 0: skip this part (default: %(default)s)",
    )
    parser.add_argument("--busy", action="store_true", help="keep one core busy during the runs")
    parser.add_argument(
        "--replay", type=Path, nargs="*", default=[], metavar="FILE", help="type these files keystroke by keystroke"
    )
    parser.add_argument(
        "--keys", type=int, default=400, help="type this many keystrokes in each file (default: %(default)s)"
    )
    parser.add_argument(
        "--interval-ms", type=float, default=150, help="milliseconds between two keys (default: %(default)s)"
    )
    parser.add_argument(
        "--pause-ms", type=float, default=1500, help="milliseconds at the end of a line (default: %(default)s)"
    )
    parser.add_argument(
        "--model", default=DEFAULT_MODEL, help="use this model: a name from `lacuna models list` (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    return parser


if __name__ == "__main__":
    sys.exit(main())
