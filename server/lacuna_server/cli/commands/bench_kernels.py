"""``lacuna bench kernels``: checks that every kernel is right on a device, and how fast it is."""

from typing import Annotated

import typer

from lacuna_server.cli.commands.options import JsonOption
from lacuna_server.console import output

FAILED = 1


def bench_kernels(
    device: Annotated[str, typer.Option(help="Use cpu, cuda or cuda:N; by default a GPU if there is one.")] = "",
    runs: Annotated[int, typer.Option(min=1, help="Time each kernel in this many runs of 20 calls.")] = 50,
    json_output: JsonOption = False,
) -> None:
    """Check that every kernel computes the right result, and compare its time with torch's.

    On a CPU Triton's kernels are interpreted and not timed. Exit with 1 if a result is wrong.
    """
    from lacuna_kernels import gpu, native
    from lacuna_model.evaluate.bench import kernels as benchmark
    from lacuna_model.hub import models
    from lacuna_model.network.devices import choose_device, choose_threads

    place = choose_device(device)
    own = native.load(models.kernels_dir(), choose_threads()) if place.type == "cpu" else None
    costs = benchmark.bench_kernels(place, runs=runs, native=own)
    flash = place.type == "cuda" and gpu.flash_attention() is not None
    if json_output:
        output.print_json({"device": str(place), "flash_attn": flash, "kernels": costs})
    else:
        by = f"with{'' if flash else 'out'} flash-attn" if place.type == "cuda" else "Triton interpreted and not timed"
        output.print_table(benchmark.table(costs, f"Kernels on {place}, {by}"))
    if not all(cost.right for cost in costs):
        raise typer.Exit(FAILED)


def add_to(bench: typer.Typer) -> None:
    """Registers the command."""
    bench.command("kernels")(bench_kernels)
