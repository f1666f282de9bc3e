"""The command ``evaluate``: measures quality, compared with llama.cpp."""

from pathlib import Path
from typing import Annotated

import typer
from tests.benchmarks.figures import show
from tests.benchmarks.held_out import cases, measure
from tests.benchmarks.instructions import edits
from tests.benchmarks.instructions.judging import missing_tools
from tests.benchmarks.instructions.tasks import Kind, load_tasks
from tests.benchmarks.records import subject
from tests.benchmarks.tasks import cpp, fills
from tests.benchmarks.tasks.dataset import load_problems, several, spread
from tests.benchmarks.tasks.engines import LACUNA, chosen

from lacuna_model.commands.program import JsonOption
from lacuna_model.core.errors import RequestError
from lacuna_model.engine import Engine
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_model.readers import load_tokenizer
from training.options import ModelOption


def evaluate(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="Fill the problems in this file (HumanEval-Infilling, .jsonl.gz), and run their tests."
        ),
    ] = None,
    gaps: Annotated[
        int,
        typer.Option(
            "--gaps",
            min=1,
            max=8,
            help="With --data: cut this many lines from a solution, and fill them together; of solutions in C++ "
            "(HumanEval-X), random spans.",
        ),
    ] = 1,
    instructions: Annotated[
        bool,
        typer.Option(
            "--instructions", help="Edit functions by instructions instead, and judge each result by a program."
        ),
    ] = False,
    ordinary: Annotated[
        bool,
        typer.Option(
            "--ordinary", help="With --instructions: ordinary edits of code, scripts, prose and configuration."
        ),
    ] = False,
    common: Annotated[
        bool, typer.Option("--common", help="With --instructions: the twenty instructions that people try first.")
    ] = False,
    held_out: Annotated[
        Path | None,
        typer.Option(
            "--held-out",
            metavar="CORPUS",
            help="Fill gaps in the held-out files of this corpus instead (see `python -m training corpus`).",
        ),
    ] = None,
    languages: Annotated[
        str, typer.Option("--languages", help="With --held-out: use only these languages, such as go,rust.")
    ] = "",
    engines: Annotated[
        str,
        typer.Option(
            "--engines",
            help="Compare these engines, separated by commas: lacuna, lacuna-unconstrained and llama.cpp. The "
            "default is lacuna, and llama.cpp if it is installed.",
        ),
    ] = "",
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
    records: Annotated[
        Path | None,
        typer.Option(
            "--records",
            help="Write the result of every problem to this JSONL file, and go on from it.",
        ),
    ] = None,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fill the gaps of a benchmark, run its tests, and compare with llama.cpp on the same weights.

    llama.cpp gets the same text in the fill-in-the-middle prompt of the model.
    It ends each fill by itself; then our stop rule cuts the fill.
    No engine has a deadline, so a busy machine changes the times but not the fills.
    """
    names = [name for name in engines.split(",") if name]
    if instructions:
        kind: Kind = "common" if common else "ordinary" if ordinary else "sources"
        tasks = load_tasks(kind)
        tasks = tasks[: limit or len(tasks)]
        if missing := missing_tools(tasks):
            raise RequestError(f"the programs that judge the edits need {' and '.join(missing)}")
        with edits.open_records(records, subject(model), len(tasks)) as kept:
            show(edits.rows(edits.measure(tasks, Engine.load(model).fill, kept)), json_output)
        return
    if held_out:
        files = cases.held_out_files(held_out, [name for name in languages.split(",") if name])
        asked = measure.questions(files, limit or measure.DEFAULT_CASES, seed, load_tokenizer(model).encode)
    elif data is None or not data.is_file():
        raise RequestError(
            f"{data}: no such file" if data else "give one of --data FILE, --held-out CORPUS or --instructions"
        )
    elif cpp.is_cpp(data):
        asked = [cpp.cut(one, gaps, seed) for one in cpp.load(data)[: limit or None]]
    elif gaps > 1:
        asked = several(load_problems(data), gaps)[: limit or None]
    else:
        asked = [one.question() for one in spread(load_problems(data), limit)]
    fillers = chosen(model, names or ([LACUNA] if gaps > 1 else []))
    head = fills.Evaluation(subject(model), f"{held_out or data}, {gaps} gaps, seed {seed}")
    found = fills.measure(asked, fillers, records, head)
    show((measure if held_out else fills).rows(found), json_output)
