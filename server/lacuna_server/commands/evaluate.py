"""``lacuna evaluate`` and ``lacuna bench``: quality and speed, beside their peers."""

from pathlib import Path
from typing import Annotated

import typer

from lacuna_model import models
from lacuna_model.errors import RequestError
from lacuna_model.models import DEFAULT_MODEL
from lacuna_server.commands.options import JsonOption, ModelOption

RecordsOption = Annotated[Path | None, typer.Option("--records", help="Write every single result to this JSONL file.")]
bench_app = typer.Typer(name="bench", help="Measure speed beside a peer.", invoke_without_command=True)


def evaluate(
    data: Annotated[
        Path, typer.Option("--data", help="Problems (HumanEval-Infilling, .jsonl.gz), tests run for real.")
    ],
    engines: Annotated[str, typer.Option("--engines", help="Some of: lacuna,base-both-sides,base-left.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=0, help="That many problems, spread over the kinds.")] = 0,
    records: RecordsOption = None,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fill every gap of a benchmark, run its tests, and compare with the base model left to right."""
    if not data.is_file():
        raise RequestError(f"{data}: no such file")
    from lacuna_model.evaluate.engines import available_engines
    from lacuna_model.evaluate.report import evaluate_main
    from lacuna_model.loader import load_model

    wanted = [name for name in engines.split(",") if name]
    available = available_engines(load_model(model))
    evaluate_main(data, available, engines=wanted, limit=limit, records=records, as_json=json_output)


@bench_app.callback()
def bench(
    context: typer.Context,
    warm: Annotated[int, typer.Option(min=1, help="Runs with the context cached.")] = 9,
    cold: Annotated[int, typer.Option(min=1, help="Runs with the context new.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Threads of either engine.")] = 2,
    busy: Annotated[bool, typer.Option("--busy", help="Keep a core busy meanwhile.")] = False,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Time this engine and llama.cpp on the same weights, in one run, a fill of 16, 32 and 64 tokens."""
    if context.invoked_subcommand is not None:
        return
    from lacuna_model.evaluate.bench import bench_main
    from lacuna_model.evaluate.engines import available_engines
    from lacuna_model.loader import load_model

    loaded = load_model(model, threads=threads)
    bench_main(
        available_engines(loaded)["lacuna"](),
        loaded.tokenizer.encode,
        models.path(models.find(model)),
        warm=warm,
        cold=cold,
        threads=threads,
        busy=busy,
        as_json=json_output,
    )


def add_to(app: typer.Typer) -> None:
    """Adds both commands."""
    app.command()(evaluate)
    app.add_typer(bench_app)
