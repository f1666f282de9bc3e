"""The load test of a service on this machine."""

import asyncio
from typing import Annotated

import typer
from tests.benchmarks.service import load as load_test
from tests.benchmarks.service import own
from tests.benchmarks.service.load import Load, Report

from lacuna_model.commands import output
from lacuna_model.commands.options import JsonOption
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.client import lifecycle
from lacuna_server.client.client import Client
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
    """Load a new service with many typing sessions, and check that every request gets an answer or a refusal."""
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
    if report.lost:
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
        f"{report.lost} without an answer, {report.twice} with a second one\n"
        f"results after p50 {report.p50_ms:.0f} ms, p95 {report.p95_ms:.0f} ms, p99 {report.p99_ms:.0f} ms, "
        f"the slowest {report.longest_ms:.0f} ms\n"
    )


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("serve")(serve)
