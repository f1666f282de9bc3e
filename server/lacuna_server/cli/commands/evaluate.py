"""``lacuna evaluate``: measures quality, compared with llama.cpp."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.core.errors import RequestError
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import JsonOption, ModelOption
from lacuna_server.console import output

RecordsOption = Annotated[Path | None, typer.Option("--records", help="Write every single result to this JSONL file.")]

DataOption = Annotated[
    Path | None, typer.Option("--data", help="Problems (HumanEval-Infilling, .jsonl.gz), tests run for real.")
]
WorkspacesOption = Annotated[
    bool, typer.Option("--workspaces", help="Instead: gaps in packages of PyPI, with and without the workspace.")
]
HeldOutOption = Annotated[
    Path | None,
    typer.Option("--held-out", metavar="CORPUS", help="Instead: gaps in held-out files, of `lacuna train corpus`."),
]
LanguagesOption = Annotated[str, typer.Option("--languages", help="With --held-out: some of them, as in go,rust.")]
PlotsOption = Annotated[
    Path | None, typer.Option("--plots", help="With --held-out: draw what steps do, into this folder.")
]
EnginesOption = Annotated[
    str,
    typer.Option(
        "--engines",
        help="Some of: lacuna,lacuna-unconstrained,lacuna-candidates and llama.cpp, which fill with --model, and "
        f"lacuna-small,llama.cpp-small, which fill with {models.SMALL_MODEL}; by default lacuna,llama.cpp, where "
        "that is installed. A diffusion checkpoint has ways to spend its steps: 'lacuna: one pass' and others. "
        "With --workspaces: model,drafts,drafts and snippets.",
    ),
]
GapsOption = Annotated[
    int, typer.Option("--gaps", min=1, max=8, help="With --data: so many lines of a solution at once, in two ways.")
]


def evaluate(
    data: DataOption = None,
    workspaces: WorkspacesOption = False,
    held_out: HeldOutOption = None,
    languages: LanguagesOption = "",
    plots: PlotsOption = None,
    engines: EnginesOption = "",
    gaps: GapsOption = 1,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="That many problems; with --held-out: cases a language.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Which gaps are drawn.")] = 0,
    records: RecordsOption = None,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fill every gap of a benchmark, run its tests, and compare with llama.cpp on the same weights.

    llama.cpp gets the same text in the model's own prompt for filling in the middle, ends its fill by itself, and has
    it cut by our stop rule. No engine has a deadline: a busy machine changes times, but no fill.
    """
    if workspaces:
        _evaluate_workspaces(engines, limit, seed, records, json_output, model)
        return
    wanted = [name for name in engines.split(",") if name]
    if held_out:
        chosen = [name for name in languages.split(",") if name]
        _evaluate_held_out(held_out, model, wanted, chosen, limit, seed, records, plots, json_output)
        return
    if data is None or not data.is_file():
        raise RequestError(f"{data}: no such file" if data else "what: --data FILE, --held-out CORPUS or --workspaces")
    if gaps > 1:
        _evaluate_several(data, gaps, limit, json_output, model)
        return
    from lacuna_model.evaluate.tasks.engines import compared_by_default, compared_engines
    from lacuna_model.evaluate.tasks.report import evaluate_main

    wanted = wanted or compared_by_default(model)
    evaluate_main(data, compared_engines(model), engines=wanted, limit=limit, records=records, as_json=json_output)


def _evaluate_held_out(
    corpus: Path,
    model: str,
    engines: Sequence[str],
    languages: Sequence[str],
    limit: int,
    seed: int,
    records: Path | None,
    plots: Path | None,
    json_output: bool,
) -> None:
    from lacuna_model.evaluate.held_out.main import DEFAULT_CASES, held_out_main
    from lacuna_model.evaluate.held_out.tables import tables

    found = held_out_main(
        corpus,
        model,
        engines=engines,
        languages=languages,
        cases=limit or DEFAULT_CASES,
        seed=seed,
        records=records,
        plots=plots,
    )
    if json_output:
        output.print_json(found)
        return
    for table in tables(found):
        output.print_table(table)


def _evaluate_several(data: Path, gaps: int, limit: int, json_output: bool, model: str) -> None:
    from lacuna_model.backends.readers import load
    from lacuna_model.evaluate.tasks import several
    from lacuna_model.evaluate.tasks.dataset import load_problems
    from lacuna_model.evaluate.tasks.engines import available_engines
    from lacuna_model.evaluate.tasks.sandbox import Sandbox

    solutions = several.several(load_problems(data), gaps)
    solutions = solutions[: limit or len(solutions)]
    filler = available_engines(load(model))["lacuna"]()
    found = []
    with Sandbox() as sandbox, output.counting("solutions", 2 * len(solutions)) as advance:
        for one in several.measure(solutions, filler, sandbox):
            found.append(one)
            advance()
    rows = several.summarise(found)
    if json_output:
        output.print_json({"ways": rows})
    else:
        output.print_table(several.table(rows, gaps))


def _evaluate_workspaces(arms: str, limit: int, seed: int, records: Path | None, json_output: bool, model: str) -> None:
    from lacuna_model.backends.readers import load
    from lacuna_model.evaluate.tasks.records import subject
    from lacuna_model.evaluate.workspaces.cases import fetch_packages
    from lacuna_model.evaluate.workspaces.main import DEFAULT_CASES, workspace_main

    wanted = [name for name in arms.split(",") if name]
    packages = list(fetch_packages())
    workspace_main(
        load(model),
        packages,
        arms=wanted,
        limit=limit or DEFAULT_CASES,
        seed=seed,
        subject=subject(model),
        records=records,
        as_json=json_output,
    )


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(evaluate)
