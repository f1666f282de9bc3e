"""The commands that measure the engine in this process: its speed, passes, kernels, caches and suggestions."""

from pathlib import Path
from typing import Annotated

import typer
from tests.benchmarks.commands.options import ListedModelOption

from lacuna_model.core.errors import RequestError
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import JsonOption
from lacuna_server.console import output
from training.options import CORPUS, CorpusOption, ThreadsOption

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


def compilers(
    threads: ThreadsOption = 0,
    instructions: Annotated[
        str, typer.Option("--instructions", help='Take these, such as "AVX2", not the best that this CPU has.')
    ] = "",
    runs: Annotated[int, typer.Option(min=1, help="Repeat each measurement this many times.")] = 15,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Time passes with the kernels of this system's compiler and of a wheel (zig's), in turns; 1 if a bit differs."""
    import tempfile

    from tests.benchmarks.engine import compilers as benchmark

    from lacuna_model.backends.readers import load

    with tempfile.TemporaryDirectory(prefix="lacuna-") as folder, benchmark.with_instructions(instructions) as chosen:
        system = load(model, threads=threads, device="cpu")
        with benchmark.of_a_wheel(Path(folder), chosen):
            wheel = load(model, threads=threads, device="cpu")
        costs = benchmark.bench_compilers(system, wheel, runs=runs)
    if json_output:
        output.print_json({"passes": costs})
    else:
        output.print_table(benchmark.table(costs, chosen))
    if not all(cost.same for cost in costs):
        raise typer.Exit(FAILED)


def checkpoints(
    context: Annotated[int, typer.Option(min=2, help="Tokens of text around the gap.")] = 900,
    slots: Annotated[int, typer.Option(min=1, help="Slots of the gap.")] = 16,
    runs: Annotated[int, typer.Option(min=1, help="Repeat each measurement this many times.")] = 5,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
) -> None:
    """Time passes of a diffusion model of 0.5B with random weights: over a whole text and over its slots alone."""
    from tests.benchmarks.engine import checkpoints as benchmark

    costs = benchmark.bench_checkpoints(context=context, slots=slots, runs=runs, threads=threads)
    if json_output:
        output.print_json({"passes": costs})
    else:
        output.print_table(benchmark.table(costs))


def workspace(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder whose files are indexed.")],
    places: Annotated[int, typer.Option(min=1, help="Look up drafts at this many places, in 24 steps each.")] = 40,
    seed: Annotated[int, typer.Option(help="Draw the places with this random seed.")] = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Index a folder, and look up drafts in it as the denoise loop does: time and memory."""
    import torch
    from tests.benchmarks.engine import prior as benchmark

    from lacuna_model.backends.readers import load_tokenizer

    torch.set_num_threads(1)  # the time of waiting threads would be counted as work
    cost = benchmark.bench_workspace(load_tokenizer(model), folder, places=places, seed=seed)
    if json_output:
        output.print_json(cost)
    else:
        output.print_table(benchmark.table(cost))


def suffix(
    corpus: CorpusOption = CORPUS,
    cases: Annotated[int, typer.Option(min=1, help="Use this many gaps in the held-out files of each language.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Draw the gaps with this random seed.")] = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Encode few or all tokens of the suffix again after typing, and count the fills that differ."""
    from tests.benchmarks.engine import suffix as benchmark
    from tests.benchmarks.held_out.texts import HeldOut, find_held_out

    from lacuna_model.backends.readers import load
    from lacuna_model.fim.loading import LoadedFim

    loaded = load(model)
    if not isinstance(loaded, LoadedFim):
        raise RequestError(
            "this benchmark does not apply to an open checkpoint, which reads the whole text in every pass"
        )
    files = [HeldOut(path, language) for language, path in find_held_out(corpus).items()]
    drawn = [case for file in files for case in file.cases(cases, seed)]
    bench = benchmark.SuffixBench(loaded)
    with output.counting("gaps", len(drawn)) as advance:
        for one in drawn:
            bench.add(one)
            advance()
    rows = bench.rows()
    if not rows:
        raise RequestError(f"{corpus}: no gap has a suffix of {benchmark.LEAST_SUFFIX} tokens")
    if json_output:
        output.print_json({"suffix": rows})
    else:
        output.print_table(benchmark.table(rows))


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


def readers(
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help="HumanEval-Infilling problems, .jsonl.gz.")],
    limit: Annotated[int, typer.Option("--limit", min=0, help="Fill this many problems, evenly spread; 0: all.")] = 240,
    syntax: Annotated[bool, typer.Option("--syntax", help="Check the syntax, as fills for users do.")] = False,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Fill the gaps of problems by our own reader and by libllama, in turns: equal fills, passes, tokens and times."""
    from tests.benchmarks.engine import two_readers as benchmark
    from tests.benchmarks.tasks.dataset import load_problems, spread
    from tests.benchmarks.tasks.runner import request_for

    from lacuna_model.backends.readers import LLAMA, NONE, OWN, load
    from lacuna_model.core.params import DecodeOptions
    from lacuna_model.fim.loading import LoadedFim

    if models.folder(model) is not None:
        raise RequestError(f"libllama reads GGUF files, and {model} is a folder")
    problems = spread(load_problems(data), limit)
    both = [load(model, threads=threads, device="cpu", draft_model=NONE, backend=one) for one in (OWN, LLAMA)]
    bench = benchmark.TwoReaders([one for one in both if isinstance(one, LoadedFim)], DecodeOptions(syntax=syntax))
    with output.counting("problems", len(problems)) as advance:
        for problem in problems:
            bench.add(request_for(problem))
            advance()
    report = bench.report()
    if json_output:
        output.print_json(report)
        return
    for table in benchmark.tables(report):
        output.print_table(table)


def sessions(
    gaps: Annotated[int, typer.Option(min=1, help="Fill this many gaps, each in a document of its own.")] = 16,
    max_tokens: Annotated[int, typer.Option(min=1, help="Limit each fill to this many tokens.")] = 32,
    syntax: Annotated[bool, typer.Option("--syntax", help="Check the syntax, as fills for users do.")] = False,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Fill gaps with 1, 2, 4 and 8 sessions at once, with shared passes and without: throughput and latency."""
    from tests.benchmarks.engine import sessions as benchmark

    from lacuna_model.engine import Engine
    from lacuna_model.fim.drafting.costs import WIDTHS
    from lacuna_model.fim.loading import LoadedFim

    loaded = Engine.load(model, threads=threads).model
    if not isinstance(loaded, LoadedFim):
        raise RequestError("requests of an open checkpoint share no passes")
    requests = benchmark.gaps(loaded, gaps, max_tokens, syntax=syntax)
    with output.counting("fills", len(requests) * (2 * len(benchmark.SESSIONS) - 1)) as advance:
        rows = list(benchmark.bench_sessions(loaded, requests, advance=advance))
    if json_output:
        output.print_json({"sessions": rows, "pass_ms": {str(n): round(loaded.costs.ms(n), 2) for n in WIDTHS}})
    else:
        output.print_table(benchmark.table(rows))


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("speed")(speed)
    app.command("passes")(passes)
    app.command("compilers")(compilers)
    app.command("checkpoints")(checkpoints)
    app.command("workspace")(workspace)
    app.command("suffix")(suffix)
    app.command("kernels")(kernels)
    app.command("readers")(readers)
    app.command("sessions")(sessions)
