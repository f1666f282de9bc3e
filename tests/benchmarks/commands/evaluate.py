"""The command ``evaluate``: measures quality, compared with llama.cpp."""

from collections.abc import Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lacuna_model.commands import output
from lacuna_model.commands.options import JsonOption
from lacuna_model.core.errors import RequestError
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from training.options import ModelOption

if TYPE_CHECKING:
    from tests.benchmarks.instructions.tasks import Kind

RecordsOption = Annotated[
    Path | None, typer.Option("--records", help="Write the result of every gap to this JSONL file.")
]

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Fill the problems in this file (HumanEval-Infilling, .jsonl.gz), and run their tests."
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
CommonOption = Annotated[
    bool, typer.Option("--common", help="With --instructions: the twenty instructions that people try first.")
]
HeldOutOption = Annotated[
    Path | None,
    typer.Option(
        "--held-out",
        metavar="CORPUS",
        help="Fill gaps in the held-out files of this corpus instead (see `python -m training corpus`).",
    ),
]
LanguagesOption = Annotated[
    str, typer.Option("--languages", help="With --held-out: use only these languages, such as go,rust.")
]
EnginesOption = Annotated[
    str,
    typer.Option(
        "--engines",
        help="Compare these engines, separated by commas: lacuna, lacuna-unconstrained, lacuna-cut (the same, checked "
        "once and cut to the valid lines), lacuna-candidates and llama.cpp use --model; "
        f"lacuna-small and llama.cpp-small use {models.SMALL_MODEL}. The default is lacuna, "
        "and llama.cpp if it is installed. An open checkpoint has further engines, which differ in the number of "
        "steps, such as 'lacuna: one pass'.",
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
    instructions: InstructionsOption = False,
    ordinary: OrdinaryOption = False,
    common: CommonOption = False,
    held_out: HeldOutOption = None,
    languages: LanguagesOption = "",
    engines: EnginesOption = "",
    gaps: GapsOption = 1,
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            min=0,
            help="Use at most this many problems (with --held-out, cases per language); "
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
    if instructions:
        kind: Kind = "common" if common else "ordinary" if ordinary else "sources"
        _evaluate_instructions(limit, records, json_output, model, kind)
        return
    wanted = [name for name in engines.split(",") if name]
    if held_out:
        chosen = [name for name in languages.split(",") if name]
        _evaluate_held_out(held_out, model, wanted, chosen, limit, seed, records, json_output)
        return
    if data is None or not data.is_file():
        raise RequestError(
            f"{data}: no such file" if data else "give one of --data FILE, --held-out CORPUS or --instructions"
        )
    if gaps > 1:
        _evaluate_several(data, gaps, wanted, limit, json_output, model)
        return
    from tests.benchmarks.tasks.engines import compared_by_default, compared_engines
    from tests.benchmarks.tasks.report import evaluate_main

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
    json_output: bool,
) -> None:
    from tests.benchmarks.held_out.main import DEFAULT_CASES, held_out_main
    from tests.benchmarks.held_out.tables import tables

    found = held_out_main(
        corpus,
        model,
        engines=engines,
        languages=languages,
        cases=limit or DEFAULT_CASES,
        seed=seed,
        records=records,
    )
    if json_output:
        output.print_json(found)
        return
    for table in tables(found):
        output.print_table(table)


def _evaluate_several(data: Path, gaps: int, engines: Sequence[str], limit: int, json_output: bool, model: str) -> None:
    from tests.benchmarks.tasks import several
    from tests.benchmarks.tasks.dataset import load_problems
    from tests.benchmarks.tasks.engines import available_engines
    from tests.benchmarks.tasks.runner import pick
    from tests.benchmarks.tasks.sandbox import Sandbox

    from lacuna_model.engine import Engine

    solutions = several.several(load_problems(data), gaps)
    solutions = solutions[: limit or len(solutions)]
    fillers = pick(available_engines(Engine.load(model)), engines or ["lacuna"])
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


def _evaluate_instructions(limit: int, records: Path | None, json_output: bool, model: str, kind: "Kind") -> None:
    from tests.benchmarks.instructions import measure
    from tests.benchmarks.instructions.judging import missing_tools
    from tests.benchmarks.instructions.tasks import load_tasks
    from tests.benchmarks.tasks.records import subject
    from tests.benchmarks.tasks.sandbox import Sandbox

    from lacuna_model.engine import Engine

    tasks = load_tasks(kind)
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


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("evaluate")(evaluate)
