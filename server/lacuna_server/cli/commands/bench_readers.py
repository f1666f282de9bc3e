"""``lacuna bench readers``: the fills of one GGUF file by our own layers and by libllama."""

from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.core.errors import RequestError
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import JsonOption, ListedModelOption, ThreadsOption
from lacuna_server.console import output


def bench_readers(
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help="HumanEval-Infilling problems, .jsonl.gz.")],
    limit: Annotated[int, typer.Option("--limit", min=0, help="Fill this many problems, evenly spread; 0: all.")] = 240,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Fill the gaps of problems by our own reader and by libllama, in turns: equal fills, passes, tokens and times."""
    from lacuna_model.backends.readers import LLAMA, NONE, OWN, load
    from lacuna_model.evaluate.bench import two_readers as benchmark
    from lacuna_model.evaluate.tasks.dataset import load_problems, spread
    from lacuna_model.evaluate.tasks.runner import request_for
    from lacuna_model.fim.loading import LoadedFim

    if models.folder(model) is not None:
        raise RequestError(f"libllama reads GGUF files, and {model} is a folder")
    problems = spread(load_problems(data), limit)
    both = [load(model, threads=threads, device="cpu", draft_model=NONE, backend=one) for one in (OWN, LLAMA)]
    bench = benchmark.TwoReaders([one for one in both if isinstance(one, LoadedFim)])
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


def add_to(bench: typer.Typer) -> None:
    """Adds the command."""
    bench.command("readers")(bench_readers)
