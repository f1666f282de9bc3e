"""``lacuna evaluate`` and ``lacuna bench``: quality and speed, beside their peers."""

from pathlib import Path
from typing import Annotated

import typer

from lacuna_model import models
from lacuna_model.errors import RequestError
from lacuna_model.models import DEFAULT_MODEL
from lacuna_server import output
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


@bench_app.command("passes")
def bench_passes(
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0: as many as the engine takes.")] = 0,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 15,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Time single forward passes over 4 to 32 slots, and the encoding of 1,024 tokens of context."""
    from lacuna_model.evaluate import bench_passes as benchmark
    from lacuna_model.loader import load_model

    costs = benchmark.bench_passes(load_model(model, threads=threads), runs=runs)
    if json_output:
        output.print_json({"passes": costs})
    else:
        output.print_table(benchmark.table(costs))


@bench_app.command("syntax")
def bench_syntax(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Source files; the language goes by the name.")
    ],
    gaps: Annotated[str, typer.Option(help="Gaps of a case.")] = "1,2,3,8",
    slots: Annotated[str, typer.Option(help="Slots of a gap.")] = "4,16,48",
    cases: Annotated[int, typer.Option(min=1, help="Cases of a cell.")] = 25,
    noise: Annotated[float, typer.Option(min=0.0, max=1.0, help="Slots with a wrong best token; 1: all.")] = 0.15,
    lines: Annotated[int, typer.Option(min=0, help="Repeat each file until it has so many lines.")] = 0,
    by_language: Annotated[bool, typer.Option("--by-language", help="A row for every language.")] = False,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fill gaps with a model that knows little, with and without the constraint: validity, cost and oracles."""
    from lacuna_model.evaluate import bench_syntax as benchmark
    from lacuna_model.loader import load_tokenizer

    texts = source_texts(files, lines)
    gap_counts, slot_counts = [int(n) for n in gaps.split(",")], [int(n) for n in slots.split(",")]
    cells = []
    with output.counting("syntax", len(texts) * len(gap_counts) * len(slot_counts) * len(benchmark.MODES)) as advance:
        for cell in benchmark.run(
            texts, load_tokenizer(model), cases=cases, noise=noise, gaps=gap_counts, slots=slot_counts
        ):
            cells.append(cell)
            advance()
    shown = cells if by_language else benchmark.totals(cells)
    if json_output:
        output.print_json({"cells": shown})
    else:
        output.print_table(benchmark.table(shown))


def source_texts(paths: list[Path], lines: int) -> dict[str, list[bytes]]:
    """The files' texts by language, each repeated until it has ``lines`` lines; unknown languages are refused."""
    from lacuna_model.evaluate.bench_syntax import grown
    from lacuna_model.syntax import language_for

    texts: dict[str, list[bytes]] = {}
    for path in paths:
        language = language_for(str(path))
        if language is None:
            raise RequestError(f"{path}: no language is known for this name")
        texts.setdefault(language.name, []).append(grown(path.read_bytes(), lines))
    return texts


def add_to(app: typer.Typer) -> None:
    """Adds both commands."""
    app.command()(evaluate)
    app.add_typer(bench_app)
