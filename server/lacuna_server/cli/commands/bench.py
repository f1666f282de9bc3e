"""``lacuna bench``: measures speed and the constraint, compared with llama.cpp."""

from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.core.errors import RequestError
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands import (
    bench_cluster,
    bench_confidence,
    bench_drafts,
    bench_functions,
    bench_kernels,
    bench_lsp,
    bench_readers,
    bench_serve,
    bench_sessions,
    bench_unclean,
)
from lacuna_server.cli.commands.options import (
    CORPUS,
    CorpusOption,
    JsonOption,
    ListedModelOption,
    NoiseOption,
    ThreadsOption,
)
from lacuna_server.console import output

bench_app = typer.Typer(name="bench", invoke_without_command=True)


@bench_app.callback()
def bench(
    context: typer.Context,
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
    if context.invoked_subcommand is not None:
        return
    from lacuna_model.backends.readers import load
    from lacuna_model.evaluate.bench.main import bench_main
    from lacuna_model.evaluate.tasks import llama
    from lacuna_model.evaluate.tasks.engines import available_engines
    from lacuna_model.fim.loading import LoadedFim

    llama.require()
    loaded = load(model, threads=threads, device="cpu")  # llama.cpp runs on the CPU too
    bench_main(
        available_engines(loaded)["lacuna"](),
        loaded.tokenizer.encode,
        models.weights(model),
        drafting=loaded.smaller.path if isinstance(loaded, LoadedFim) and loaded.smaller is not None else None,
        warm=warm,
        cold=cold,
        threads=threads,
        busy=busy,
        as_json=json_output,
    )


@bench_app.command("passes")
def bench_passes(
    threads: ThreadsOption = 0,
    runs: Annotated[int, typer.Option(min=1, help="Repeat each measurement this many times.")] = 15,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Time single forward passes by their number of rows, and the encoding of 1,024 tokens of context."""
    from lacuna_model.backends.readers import load
    from lacuna_model.evaluate.bench import passes as benchmark

    costs = benchmark.bench_passes(load(model, threads=threads), runs=runs)
    if json_output:
        output.print_json({"passes": costs})
    else:
        output.print_table(benchmark.table(costs))


@bench_app.command("checkpoints")
def bench_checkpoints(
    context: Annotated[int, typer.Option(min=2, help="Tokens of text around the gap.")] = 900,
    slots: Annotated[int, typer.Option(min=1, help="Slots of the gap.")] = 16,
    runs: Annotated[int, typer.Option(min=1, help="Repeat each measurement this many times.")] = 5,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
) -> None:
    """Time passes of a diffusion model of 0.5B with random weights: over a whole text and over its slots alone."""
    from lacuna_model.evaluate.bench import checkpoints as benchmark

    costs = benchmark.bench_checkpoints(context=context, slots=slots, runs=runs, threads=threads)
    if json_output:
        output.print_json({"passes": costs})
    else:
        output.print_table(benchmark.table(costs))


@bench_app.command("workspace")
def bench_workspace(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder whose files are indexed.")],
    places: Annotated[int, typer.Option(min=1, help="Look up drafts at this many places, in 24 steps each.")] = 40,
    seed: Annotated[int, typer.Option(help="Draw the places with this random seed.")] = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Index a folder, and look up drafts in it as the denoise loop does: time and memory."""
    import torch

    from lacuna_model.backends.readers import load_tokenizer
    from lacuna_model.evaluate.bench import prior as benchmark

    torch.set_num_threads(1)  # the time of waiting threads would be counted as work
    cost = benchmark.bench_workspace(load_tokenizer(model), folder, places=places, seed=seed)
    if json_output:
        output.print_json(cost)
    else:
        output.print_table(benchmark.table(cost))


@bench_app.command("syntax")
def bench_syntax(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Source files; the file name decides the language.")
    ],
    gaps: Annotated[str, typer.Option(help="Run cases with these numbers of gaps.")] = "1,2,3,8",
    slots: Annotated[str, typer.Option(help="Run cases with these numbers of slots per gap.")] = "4,16,48",
    cases: Annotated[int, typer.Option(min=1, help="Run this many cases for each row of the table.")] = 25,
    noise: NoiseOption = 0.15,
    foresight: Annotated[
        int, typer.Option(min=0, help="Let the model know only this many slots from the first open one on; 0: all.")
    ] = 0,
    lines: Annotated[int, typer.Option(min=0, help="Repeat each file until it has this many lines.")] = 0,
    seed: Annotated[int, typer.Option(help="Draw the cases with this random seed.")] = 0,
    engine: Annotated[
        bool, typer.Option("--engine", help="Fill with the real model, not with a simulated one.")
    ] = False,
    threads: ThreadsOption = 0,
    by_language: Annotated[bool, typer.Option("--by-language", help="Print one row per language.")] = False,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Fill gaps with a simulated model, with and without the constraint: validity, cost and compiler checks."""
    import gc

    from lacuna_model.backends.readers import load_tokenizer
    from lacuna_model.engine import Engine
    from lacuna_model.evaluate.constraint import syntax as benchmark

    fill = Engine.load(model, threads=threads).stream if engine else None
    tokens = load_tokenizer(model)
    gc.freeze()  # as the service does: collections do not scan what is loaded so far
    modes = benchmark.ENGINE_MODES if engine else benchmark.MODES
    texts = source_texts(files, lines)
    gap_counts, slot_counts = [int(n) for n in gaps.split(",")], [int(n) for n in slots.split(",")]
    cells = []
    with output.counting("syntax", len(texts) * len(gap_counts) * len(slot_counts) * len(modes)) as advance:
        for cell in benchmark.run(
            texts,
            tokens,
            fill=fill,
            cases=cases,
            noise=noise,
            foresight=foresight,
            gaps=gap_counts,
            slots=slot_counts,
            seed=seed,
        ):
            cells.append(cell)
            advance()
    shown = [cell for cell in cells if (cell.language != benchmark.ALL) == by_language]
    if json_output:
        output.print_json({"cells": shown})
    else:
        output.print_table(benchmark.table(shown))


@bench_app.command("typed")
def bench_typed(
    corpus: CorpusOption = CORPUS,
    cases: Annotated[int, typer.Option(min=1, help="Use this many cursors in lines of held-out files.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Draw the cursors with this random seed.")] = 0,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Suggest the rest of a line at cursors in held-out files: number of exact and refused suggestions, and latency."""
    from lacuna_model.backends.readers import load
    from lacuna_model.evaluate.bench import typed
    from lacuna_model.evaluate.fitting.confidence import held_out_documents
    from lacuna_model.evaluate.tasks.engines import available_engines

    documents, filler = held_out_documents(corpus), available_engines(load(model, threads=threads))["lacuna"]()
    found = []
    with output.counting("suggestions", cases) as advance:
        for case in typed.typed_cases(documents, cases, seed):
            found.append(typed.suggest(case, filler))
            advance()
    rows = typed.outcomes(found)
    if json_output:
        output.print_json({"typed": rows})
    else:
        output.print_table(typed.outcome_table(rows))


@bench_app.command("suffix")
def bench_suffix(
    corpus: CorpusOption = CORPUS,
    cases: Annotated[int, typer.Option(min=1, help="Use this many gaps in the held-out files of each language.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Draw the gaps with this random seed.")] = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Encode few or all tokens of the suffix again after typing, and count the fills that differ."""
    from lacuna_model.backends.readers import load
    from lacuna_model.evaluate.bench import suffix
    from lacuna_model.evaluate.held_out.texts import HeldOut, find_held_out
    from lacuna_model.fim.loading import LoadedFim

    loaded = load(model)
    if not isinstance(loaded, LoadedFim):
        raise RequestError(
            "this benchmark does not apply to an open checkpoint, which reads the whole text in every pass"
        )
    files = [HeldOut(path, language) for language, path in find_held_out(corpus).items()]
    drawn = [case for file in files for case in file.cases(cases, seed)]
    bench = suffix.SuffixBench(loaded)
    with output.counting("gaps", len(drawn)) as advance:
        for one in drawn:
            bench.add(one)
            advance()
    rows = bench.rows()
    if not rows:
        raise RequestError(f"{corpus}: no gap has a suffix of {suffix.LEAST_SUFFIX} tokens")
    if json_output:
        output.print_json({"suffix": rows})
    else:
        output.print_table(suffix.table(rows))


@bench_app.command("refactor")
def bench_refactor(
    package: Annotated[
        str, typer.Option("--package", help="Refactor this PyPI package, a requirement as pip takes it.")
    ],
    recipe: Annotated[
        str, typer.Option("--recipe", help="Run this recipe; see `lacuna refactor --list-recipes`.")
    ] = "annotations",
    pattern: Annotated[
        str, typer.Option("--pattern", help="Rewrite this Python pattern instead of running a recipe.")
    ] = "",
    template: Annotated[str, typer.Option("--template", help="Replace the pattern with this template.")] = "",
    alone: Annotated[
        int, typer.Option(min=0, help="Fill this many places also one by one, for comparison; 0: all.")
    ] = 0,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Refactor a whole package in a temporary folder, in batches and place by place, and check every file."""
    import tempfile

    from lacuna_model.engine import Engine
    from lacuna_server.refactor import benchmark
    from lacuna_server.refactor.recipes import by_recipe
    from lacuna_server.refactor.rewriting.refactoring import Refactoring, by_structure

    refactoring = by_recipe(recipe, {})
    if pattern:
        structural = by_structure(pattern, template)
        refactoring = Refactoring(structural.title, structural.find, frozenset({"python"}))
    with tempfile.TemporaryDirectory() as folder:
        tree = benchmark.fetch(package, Path(folder))
        found = benchmark.find(tree, refactoring)
        compared = benchmark.first(found, alone)
        count = sum(len(rewrites) for _, rewrites in found)
        engine = Engine.load(model, threads=threads)
        with output.counting("place by place", sum(len(rewrites) for _, rewrites in compared)) as advance:
            one_by_one, _ = benchmark.run(compared, engine.fill, advance, max_holes=1)
        with output.counting("in batches", count) as advance:
            together, plan = benchmark.run(found, engine.fill, advance)
        outcome = benchmark.write(found, plan, tree)
    if json_output:
        output.print_json({"runs": [one_by_one, together], "outcome": outcome})
        return
    output.print_table(benchmark.table([one_by_one, together]))
    print(
        f"{outcome.changed_files} files changed, {len(outcome.unparsed_files)} do not parse, "
        f"{len(outcome.uncompiled_files)} do not compile, {outcome.lines_outside} lines changed outside the places"
    )


def source_texts(paths: list[Path], lines: int) -> dict[str, list[bytes]]:
    """Returns the files' texts by language, each repeated until it has ``lines`` lines.

    Raises RequestError for a file of unknown language.
    """
    from lacuna_model.evaluate.constraint.syntax import grown
    from lacuna_model.syntax import language_for

    texts: dict[str, list[bytes]] = {}
    for path in paths:
        language = language_for(str(path))
        if language is None:
            raise RequestError(f"{path}: no language is known for this name")
        texts.setdefault(language.name, []).append(grown(path.read_bytes(), lines))
    return texts


def add_to(app: typer.Typer) -> None:
    """Adds the command with its subcommands."""
    bench_confidence.add_to(bench_app)
    bench_functions.add_to(bench_app)
    bench_drafts.add_to(bench_app)
    bench_kernels.add_to(bench_app)
    bench_lsp.add_to(bench_app)
    bench_readers.add_to(bench_app)
    bench_serve.add_to(bench_app)
    bench_sessions.add_to(bench_app)
    bench_cluster.add_to(bench_app)
    bench_unclean.add_to(bench_app)
    app.add_typer(bench_app)
