"""The commands that measure refactors: ``refactor`` and ``confidence``."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from tests.benchmarks.commands.options import ListedModelOption

from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import JsonOption, ThreadsOption
from lacuna_server.console import output
from training.options import CORPUS, CorpusOption


def refactor(
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
    from tests.benchmarks.refactor import package as benchmark

    from lacuna_model.engine import Engine
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


def confidence(
    corpus: CorpusOption = CORPUS,
    places: Annotated[int, typer.Option(min=1, help="Fill this many places of each kind.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Draw the files and places with this random seed.")] = 0,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Refill parts of held-out Python files as refactors do, and count the right fills by their confidence."""
    from tests.benchmarks.fitting.confidence import held_out_documents
    from tests.benchmarks.refactor import calibration

    from lacuna_model.engine import Engine

    texts = [document.text for document in held_out_documents(corpus) if document.language == "python"]
    engine = Engine.load(model, threads=threads)
    found: list[calibration.Judged] = []
    with output.counting("places", places * len(calibration.KINDS)) as advance:
        for kind in calibration.KINDS:
            found += calibration.judge(texts, kind, engine.fill, places, seed, advance)
    by_kind = {kind: [one for one in found if one.kind == kind] for kind in calibration.KINDS} | {"all": found}
    rows = {kind: calibration.calibrated(own) for kind, own in by_kind.items()}
    if json_output:
        output.print_json({"rows": rows, "fills": found})
        return
    for kind, own in rows.items():
        output.print_table(calibration.table(kind, own))


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("refactor")(refactor)
    app.command("confidence")(confidence)
