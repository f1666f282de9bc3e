"""``lacuna bench cluster``: a load test of the service on a Ray cluster of this machine, beside `lacuna serve`."""

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import JsonOption, ModelOption
from lacuna_server.console import output
from lacuna_server.wire.config import ServerConfig

if TYPE_CHECKING:
    from lacuna_server.cli.cluster_load import Outcome

FAILED = 1


def bench_cluster(
    sessions: Annotated[int, typer.Option(min=1, help="Run this many sessions at the same time.")] = 300,
    keys_per_s: Annotated[float, typer.Option(min=0.1, help="Type this many keys per second in each session.")] = 5.0,
    seconds: Annotated[float, typer.Option(min=1.0, help="Type for this many seconds.")] = 60.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Limit each fill to this many tokens.")] = 1,
    functions: Annotated[int, typer.Option(min=2, help="Put this many functions into a document.")] = 14,
    deadline_ms: Annotated[
        int, typer.Option(min=0, help="Give each request this deadline in milliseconds; 0: none.")
    ] = 5000,
    workers: Annotated[int, typer.Option(min=1, help="Start this many worker nodes beside the head.")] = 2,
    replicas: Annotated[int, typer.Option(min=1, help="Hold the model in this many engine replicas.")] = 2,
    ingresses: Annotated[int, typer.Option(min=1, help="Run this many ingresses.")] = 2,
    threads: Annotated[int, typer.Option(min=0, help="Use this many CPU threads in each engine replica.")] = 1,
    kill: Annotated[
        Literal["none", "replica", "model", "node", "ingress", "proxy", "upgrade"],
        typer.Option(help="Kill -9 this halfway, or replace every replica."),
    ] = "none",
    router: Annotated[str, typer.Option(help="Route by this class of Ray Serve; by default, by document.")] = "",
    engine: Annotated[
        str, typer.Option(help="Load the engine by this function, as MODULE:FUNCTION.")
    ] = ServerConfig().engine,
    one_machine: Annotated[
        bool, typer.Option("--one-machine", help="Put `lacuna serve` under the same load instead.")
    ] = False,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Load a new cluster of nodes on this machine, and check that every request gets its own answer."""
    from lacuna_server.cli import cluster_load
    from lacuna_server.cli.load import Load

    os.environ.setdefault("RAY_SERVE_LOG_TO_STDERR", "0")
    load = Load(
        sessions=sessions,
        keys_per_s=keys_per_s,
        seconds=seconds,
        functions=functions,
        max_tokens=max_tokens,
        deadline_ms=deadline_ms,
    )
    shape = cluster_load.Shape(engine, models.absolute(model), workers, replicas, ingresses, threads, router)
    failed: list[bool] = []

    def tell(outcome: "Outcome") -> None:
        if json_output:
            output.print_json({"load": load, "shape": shape, "outcome": outcome})
        else:
            print_outcome(outcome)
        failed.append(bool(outcome.report.lost or outcome.report.crossed or outcome.report.twice))

    measure = cluster_load.measure_one_machine if one_machine else cluster_load.measure
    measure(shape, load, kill, tell)
    if any(failed):
        raise typer.Exit(FAILED)


def print_outcome(outcome: "Outcome") -> None:
    """Prints the outcome in a few lines for people."""
    from lacuna_server.cli.commands.bench_serve import print_latencies

    print_latencies(outcome.report)
    memory = ", ".join(f"{number} {kind} {mb:.0f} MB" for kind, (number, mb) in sorted(outcome.memory_mb.items()))
    output.print_exact(
        f"memory: {memory}\n"
        f"CPU time: {', '.join(f'{kind} {spent:.1f} s' for kind, spent in sorted(outcome.cpu_s.items()))}\n"
        f"killed: {outcome.killed or 'nothing'}; {outcome.report.reconnected} connections broke, "
        f"{outcome.restarted} requests were started again, {outcome.report.twice} were answered twice\n"
        f"{outcome.cached_share:.1%} of the context came from caches\n"
    )


def add_to(bench: typer.Typer) -> None:
    """Registers the command."""
    bench.command("cluster")(bench_cluster)
