"""The commands that measure the engine in this process: its speed, passes and kernels."""

from typing import Annotated

import typer
from tests.benchmarks.commands.options import ListedModelOption

from lacuna_model.commands import output
from lacuna_model.commands.options import JsonOption
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from training.options import ThreadsOption

FAILED = 1


def speed(
    warm: Annotated[int, typer.Option(min=1, help="Time this many runs with a cached context.")] = 9,
    cold: Annotated[int, typer.Option(min=1, help="Time this many runs with a new context.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Use this many CPU threads in each engine.")] = 2,
    busy: Annotated[bool, typer.Option("--busy", help="Keep one core busy during the runs.")] = False,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Measure speed: time fills of 16, 32 and 64 tokens, with llama.cpp on the same weights for comparison.

    llama.cpp is llama-cpp-python, compiled on this machine.
    It uses its prompt cache, and runs without drafts, with n-gram drafts and, where a smaller model drafts for
    Lacuna, with drafts of that one.
    """
    from tests.benchmarks.engine.main import bench_main
    from tests.benchmarks.tasks import llama
    from tests.benchmarks.tasks.engines import available_engines

    from lacuna_model.engine import Engine
    from lacuna_model.fim.loading import LoadedFim

    llama.require()
    engine = Engine.load(model, threads=threads, device="cpu")  # llama.cpp runs on the CPU too
    loaded = engine.model
    bench_main(
        available_engines(engine)["lacuna"](),
        loaded.tokenizer.encode,
        models.weights(model),
        drafting=loaded.smaller.path if isinstance(loaded, LoadedFim) and loaded.smaller is not None else None,
        warm=warm,
        cold=cold,
        threads=threads,
        busy=busy,
        as_json=json_output,
    )


def passes(
    threads: ThreadsOption = 0,
    runs: Annotated[int, typer.Option(min=1, help="Repeat each measurement this many times.")] = 15,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Time single forward passes by their number of rows, and the encoding of 1,024 tokens of context."""
    from tests.benchmarks.engine import passes as benchmark

    from lacuna_model.backends.readers import load

    costs = benchmark.bench_passes(load(model, threads=threads), runs=runs)
    if json_output:
        output.print_json({"passes": costs})
    else:
        output.print_table(benchmark.table(costs))


def kernels(
    device: Annotated[str, typer.Option(help="Use cpu, cuda or cuda:N; by default a GPU if there is one.")] = "",
    runs: Annotated[int, typer.Option(min=1, help="Time each kernel in this many runs of 20 calls.")] = 50,
    json_output: JsonOption = False,
) -> None:
    """Check that every kernel computes the right result, and compare its time with torch's.

    On a CPU Triton's kernels are interpreted and not timed. Exit with 1 if a result is wrong.
    """
    from tests.benchmarks.engine import kernels as benchmark

    from lacuna_kernels import gpu, native
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


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("speed")(speed)
    app.command("passes")(passes)
    app.command("kernels")(kernels)
