"""``lacuna bench functions``: fills gaps in real C++ functions, and compiles them."""

from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import JsonOption, ListedModelOption, ThreadsOption
from lacuna_server.console import output


def bench_functions(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", exists=True, dir_okay=False, help="C++ files with functions.")
    ],
    gaps: Annotated[str, typer.Option(help="Cut these numbers of gaps.")] = "1,2,3",
    slots: Annotated[int, typer.Option(min=1, help="Cut at most this many tokens per gap.")] = 24,
    cases: Annotated[int, typer.Option(min=1, help="Use at most this many functions.")] = 40,
    threads: ThreadsOption = 0,
    seed: Annotated[int, typer.Option(min=0, help="Draw the gaps with this random seed.")] = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Fill gaps in C++ functions, with and without the constraint, and compile the functions with g++."""
    from itertools import islice

    from lacuna_model.engine import Engine
    from lacuna_model.evaluate.constraint import functions as benchmark

    engine = Engine.load(model, threads=threads)
    outcomes: list[benchmark.Tried] = []
    numbers = [int(number) for number in gaps.split(",")]
    with benchmark.Compiler() as compiler:
        found = list(islice(benchmark.functions([path.read_bytes() for path in files], compiler), cases))
        with output.counting("functions", len(found) * len(numbers)) as advance:
            for number in numbers:
                for case in benchmark.cases(found, engine.model.tokenizer, gaps=number, slots=slots, seed=seed):
                    outcomes += benchmark.tried(case, engine.model.tokenizer, engine.stream, compiler)
                    advance()
    rows = benchmark.rows(outcomes)
    if json_output:
        output.print_json({"rows": rows})
    else:
        output.print_table(benchmark.table(rows))


def add_to(bench_app: typer.Typer) -> None:
    """Adds the command."""
    bench_app.command("functions")(bench_functions)
