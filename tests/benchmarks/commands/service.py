"""The load tests of a service: ``serve`` on this machine, ``cluster`` on a Ray cluster beside it."""

import asyncio
import os
from typing import Annotated, Literal

import typer
from tests.benchmarks.service import cluster_load, own
from tests.benchmarks.service import load as load_test
from tests.benchmarks.service.cluster_load import Outcome
from tests.benchmarks.service.load import Load, Report

from lacuna_model.commands import output
from lacuna_model.commands.options import JsonOption
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.client import lifecycle
from lacuna_server.client.client import Client
from lacuna_server.wire.config import ServerConfig
from training.options import ModelOption, ThreadsOption

FAILED = 1


def serve(
    sessions: Annotated[int, typer.Option(min=1, help="Run this many sessions at the same time.")] = 50,
    keys_per_s: Annotated[
        float, typer.Option(min=0.1, help="Type this many keys per second in each session, on average.")
    ] = 5.0,
    seconds: Annotated[float, typer.Option(min=1.0, help="Type for this many seconds.")] = 60.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Limit each fill to this many tokens.")] = 16,
    functions: Annotated[
        int, typer.Option(min=2, help="Put this many functions into a document, of about 70 tokens each.")
    ] = 14,
    deadline_ms: Annotated[
        int, typer.Option(min=0, help="Give each request this deadline in milliseconds; 0: none.")
    ] = 5000,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Load a new service with many typing sessions, and check that every request gets its own answer or a refusal."""
    load = Load(
        sessions=sessions,
        keys_per_s=keys_per_s,
        seconds=seconds,
        functions=functions,
        max_tokens=max_tokens,
        deadline_ms=deadline_ms,
    )
    with own.runtime_folder():
        report = asyncio.run(_served(load, model, threads))
    if json_output:
        output.print_json({"load": load, "report": report, "growth": report.growth})
    else:
        print_report(report)
    if report.lost or report.crossed:
        raise typer.Exit(FAILED)


async def _served(load: Load, model: str, threads: int) -> Report:
    async with own.service(model, "--threads", str(threads)) as address:
        running = lifecycle.find()
        assert running is not None
        async with await Client.connect(address) as client:
            while (await client.status()).state == "loading":
                await asyncio.sleep(0.1)
        return await load_test.run(address, load, [running.pid])


def print_report(report: Report) -> None:
    """Prints the report in a few lines for people."""
    print_latencies(report)
    output.print_exact(
        f"memory at most {max(report.memory_bytes) / 1e6:.0f} MB, {report.growth:+.1%} after the warm-up\n"
    )


def print_latencies(report: Report) -> None:
    """Prints what became of the requests, and when."""
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in report.outcomes.items())
    output.print_exact(
        f"{report.asked} requests: {outcomes}\n"
        f"{report.lost} without an answer, {report.crossed} with the answer of another request\n"
        f"results after p50 {report.p50_ms:.0f} ms, p95 {report.p95_ms:.0f} ms, p99 {report.p99_ms:.0f} ms, "
        f"the slowest {report.longest_ms:.0f} ms\n"
    )


def cluster(
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

    def tell(outcome: Outcome) -> None:
        if json_output:
            output.print_json({"load": load, "shape": shape, "outcome": outcome})
        else:
            print_outcome(outcome)
        failed.append(bool(outcome.report.lost or outcome.report.crossed or outcome.report.twice))

    measure = cluster_load.measure_one_machine if one_machine else cluster_load.measure
    measure(shape, load, kill, tell)
    if any(failed):
        raise typer.Exit(FAILED)


def print_outcome(outcome: Outcome) -> None:
    """Prints the outcome in a few lines for people."""
    print_latencies(outcome.report)
    memory = ", ".join(f"{number} {kind} {mb:.0f} MB" for kind, (number, mb) in sorted(outcome.memory_mb.items()))
    output.print_exact(
        f"memory: {memory}\n"
        f"CPU time: {', '.join(f'{kind} {spent:.1f} s' for kind, spent in sorted(outcome.cpu_s.items()))}\n"
        f"killed: {outcome.killed or 'nothing'}; {outcome.report.reconnected} connections broke, "
        f"{outcome.restarted} requests were started again, {outcome.report.twice} were answered twice\n"
        f"{outcome.cached_share:.1%} of the context came from caches\n"
    )


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("serve")(serve)
    app.command("cluster")(cluster)
