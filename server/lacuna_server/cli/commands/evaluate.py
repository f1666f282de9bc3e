"""``lacuna evaluate``: measures quality, compared with llama.cpp."""

import subprocess
import sys
from collections.abc import Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.core.errors import RequestError
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import JsonOption, ModelOption
from lacuna_server.console import output

RecordsOption = Annotated[
    Path | None, typer.Option("--records", help="Write the result of every gap to this JSONL file.")
]

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Fill the problems in this file (HumanEval-Infilling, .jsonl.gz), and run their tests."
    ),
]
WorkspacesOption = Annotated[
    bool,
    typer.Option(
        "--workspaces", help="Fill gaps in PyPI packages instead, with and without reading the rest of the package."
    ),
]
InstructionsOption = Annotated[
    bool,
    typer.Option("--instructions", help="Edit functions by instructions instead, and judge each result by a program."),
]
OrdinaryOption = Annotated[
    bool,
    typer.Option("--ordinary", help="With --instructions: ordinary edits of code, scripts, prose and configuration."),
]
HeldOutOption = Annotated[
    Path | None,
    typer.Option(
        "--held-out",
        metavar="CORPUS",
        help="Fill gaps in the held-out files of this corpus instead (see `lacuna train corpus`).",
    ),
]
EditsOption = Annotated[
    Path | None,
    typer.Option(
        "--edits",
        metavar="FILE",
        help="Make the first change of the commits in this file (.jsonl.gz) in a real language server instead, and "
        "count which of their other changes it offers.",
    ),
]
WithoutModelOption = Annotated[
    bool, typer.Option("--without-model", help="With --edits: let no model run, so that the rules alone offer edits.")
]
LanguagesOption = Annotated[
    str, typer.Option("--languages", help="With --held-out: use only these languages, such as go,rust.")
]
PlotsOption = Annotated[
    Path | None,
    typer.Option(
        "--plots", help="With --held-out and an open checkpoint: plot results by number of steps into this folder."
    ),
]
EnginesOption = Annotated[
    str,
    typer.Option(
        "--engines",
        help="Compare these engines, separated by commas: lacuna, lacuna-unconstrained, lacuna-cut (the same, checked "
        "once and cut to the valid lines), lacuna-candidates and llama.cpp use --model; "
        f"lacuna-small and llama.cpp-small use {models.SMALL_MODEL}. The default is lacuna, "
        "and llama.cpp if it is installed. An open checkpoint has further engines, which differ in the number of "
        "steps, such as 'lacuna: one pass'. With --workspaces, compare some of: 'model,drafts,drafts and snippets'.",
    ),
]
GapsOption = Annotated[
    int,
    typer.Option(
        "--gaps",
        min=1,
        max=8,
        help="With --data: cut this many lines from a solution, fill them together and one by one.",
    ),
]


def evaluate(
    data: DataOption = None,
    workspaces: WorkspacesOption = False,
    instructions: InstructionsOption = False,
    ordinary: OrdinaryOption = False,
    held_out: HeldOutOption = None,
    edits: EditsOption = None,
    without_model: WithoutModelOption = False,
    languages: LanguagesOption = "",
    plots: PlotsOption = None,
    engines: EnginesOption = "",
    gaps: GapsOption = 1,
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            min=0,
            help="Use at most this many problems (with --workspaces, cases; with --held-out, cases per language); "
            "0: all problems, or the default number of cases.",
        ),
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Draw the gaps with this random seed.")] = 0,
    records: RecordsOption = None,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fill the gaps of a benchmark, run its tests, and compare with llama.cpp on the same weights.

    llama.cpp gets the same text in the fill-in-the-middle prompt of the model.
    It ends each fill by itself; then our stop rule cuts the fill.
    No engine has a deadline, so a busy machine changes the times but not the fills.
    """
    if workspaces:
        _evaluate_workspaces(engines, limit, seed, records, json_output, model)
        return
    if edits:
        _evaluate_edits(edits, limit, records, json_output, model, without_model)
        return
    if instructions:
        _evaluate_instructions(limit, records, json_output, model, ordinary=ordinary)
        return
    wanted = [name for name in engines.split(",") if name]
    if held_out:
        chosen = [name for name in languages.split(",") if name]
        _evaluate_held_out(held_out, model, wanted, chosen, limit, seed, records, plots, json_output)
        return
    if data is None or not data.is_file():
        raise RequestError(
            f"{data}: no such file"
            if data
            else "give one of --data FILE, --held-out CORPUS, --workspaces, --edits FILE or --instructions"
        )
    if gaps > 1:
        _evaluate_several(data, gaps, wanted, limit, json_output, model)
        return
    from lacuna_model.evaluate.tasks.engines import compared_by_default, compared_engines
    from lacuna_model.evaluate.tasks.report import evaluate_main

    wanted = wanted or compared_by_default(model)
    evaluate_main(data, compared_engines(model), engines=wanted, limit=limit, records=records, as_json=json_output)


def _evaluate_edits(
    edits: Path, limit: int, records: Path | None, json_output: bool, model: str, without_model: bool
) -> None:
    """Runs the evaluation as a process, because this package may not import the language server."""
    if not edits.is_file():
        raise RequestError(f"{edits}: no such file")
    arguments = [str(edits), "--limit", str(limit), "--model", model]
    arguments += ["--without-model"] * without_model + ["--json"] * json_output
    arguments += ["--records", str(records)] if records else []
    ended = subprocess.run([sys.executable, "-I", "-m", "lacuna_lsp.bench.edits", *arguments], check=False)
    raise typer.Exit(ended.returncode)


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


def _evaluate_several(data: Path, gaps: int, engines: Sequence[str], limit: int, json_output: bool, model: str) -> None:
    from lacuna_model.backends.readers import load
    from lacuna_model.evaluate.tasks import several
    from lacuna_model.evaluate.tasks.dataset import load_problems
    from lacuna_model.evaluate.tasks.engines import available_engines
    from lacuna_model.evaluate.tasks.runner import pick
    from lacuna_model.evaluate.tasks.sandbox import Sandbox

    solutions = several.several(load_problems(data), gaps)
    solutions = solutions[: limit or len(solutions)]
    fillers = pick(available_engines(load(model)), engines or ["lacuna"])
    found = []
    labels = [f"{filler.name}, " for filler in fillers] if len(fillers) > 1 else [""]
    with Sandbox() as sandbox, output.counting("solutions", 2 * len(solutions) * len(fillers)) as advance:
        runs = (several.measure(solutions, *each) for each in zip(fillers, repeat(sandbox), labels, strict=False))
        for one in chain.from_iterable(runs):
            found.append(one)
            advance()
    rows = several.summarise(found)
    if json_output:
        output.print_json({"ways": rows})
    else:
        output.print_table(several.table(rows, gaps))


def _evaluate_instructions(limit: int, records: Path | None, json_output: bool, model: str, *, ordinary: bool) -> None:
    from lacuna_model.engine import Engine
    from lacuna_model.evaluate.instructions import measure
    from lacuna_model.evaluate.instructions.judging import missing_tools
    from lacuna_model.evaluate.instructions.tasks import load_tasks
    from lacuna_model.evaluate.tasks.records import subject
    from lacuna_model.evaluate.tasks.sandbox import Sandbox

    tasks = load_tasks(ordinary=ordinary)
    tasks = tasks[: limit or len(tasks)]
    if missing := missing_tools(tasks):
        raise RequestError(f"the programs that judge the edits need {' and '.join(missing)}")
    engine = Engine.load(model)
    found = []
    with (
        Sandbox() as sandbox,
        measure.open_records(records, subject(model), len(tasks)) as kept,
        output.counting("edits", len(tasks)) as advance,
    ):
        for one in measure.measure(tasks, engine.fill, sandbox, kept):
            found.append(one)
            advance()
    figures = measure.rows(found)
    if json_output:
        output.print_json({"rows": figures, "edits": found})
    else:
        output.print_table(measure.table(figures))


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
