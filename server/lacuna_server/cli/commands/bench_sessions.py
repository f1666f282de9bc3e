"""``lacuna bench sessions``: what it is worth that requests which run at the same time share their passes."""

from typing import Annotated

import typer

from lacuna_model.core.errors import RequestError
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import JsonOption, ListedModelOption, ThreadsOption
from lacuna_server.console import output


def bench_sessions(
    gaps: Annotated[int, typer.Option(min=1, help="Fill this many gaps, each in a document of its own.")] = 16,
    max_tokens: Annotated[int, typer.Option(min=1, help="Limit each fill to this many tokens.")] = 32,
    syntax: Annotated[bool, typer.Option("--syntax", help="Check the syntax, as fills for users do.")] = False,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Fill gaps with 1, 2, 4 and 8 sessions at once, with shared passes and without: throughput and latency."""
    from lacuna_model.backends.readers import load
    from lacuna_model.evaluate.bench import sessions as benchmark
    from lacuna_model.fim.drafting.costs import WIDTHS
    from lacuna_model.fim.loading import LoadedFim

    loaded = load(model, threads=threads)
    if not isinstance(loaded, LoadedFim):
        raise RequestError("requests of an open checkpoint share no passes")
    requests = benchmark.gaps(loaded, gaps, max_tokens, syntax=syntax)
    with output.counting("fills", len(requests) * (2 * len(benchmark.SESSIONS) - 1)) as advance:
        rows = list(benchmark.bench_sessions(loaded, requests, advance=advance))
    if json_output:
        output.print_json({"sessions": rows, "pass_ms": {str(n): round(loaded.costs.ms(n), 2) for n in WIDTHS}})
    else:
        output.print_table(benchmark.table(rows))


def add_to(bench: typer.Typer) -> None:
    """Registers the command."""
    bench.command("sessions")(bench_sessions)
