"""The command ``drafts``: what drafts are worth, by where they come from."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from tests.benchmarks.commands.options import ListedModelOption

from lacuna_model.commands import output
from lacuna_model.commands.options import JsonOption
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest
from lacuna_model.hub.models import DEFAULT_MODEL
from training.options import CORPUS, CorpusOption, ThreadsOption


def drafts(
    corpus: CorpusOption = CORPUS,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Fill the problems of this file of HumanEval-Infilling instead.", metavar="FILE"),
    ] = None,
    languages: Annotated[str, typer.Option("--languages", help="Use these languages, as in go,rust.")] = "",
    cases: Annotated[
        int,
        typer.Option(min=1, help="Use this many gaps in the held-out files of each language, or problems of --data."),
    ] = 12,
    seed: Annotated[int, typer.Option(min=0, help="Draw the gaps with this random seed.")] = 0,
    syntax: Annotated[bool, typer.Option("--syntax", help="Check the syntax, as fills for users do.")] = False,
    arms: Annotated[
        str,
        typer.Option("--arms", help="Compare these only: none,project,masks,both."),
    ] = "none,project,masks,both",
    together: Annotated[
        bool, typer.Option("--together", help="Read each context once for all: faster, where only counts matter.")
    ] = False,
    alone: Annotated[
        bool, typer.Option("--alone", help="Fill the gaps of a request by themselves, too, and compare the passes.")
    ] = False,
    part: Annotated[
        str,
        typer.Option(
            "--part", help="Use the Kth of N parts of the gaps, so that a long run is done in N.", metavar="K/N"
        ),
    ] = "1/1",
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Fill gaps without drafts, with those of the project, of masks, and both: tokens per pass and speed.

    Fills that differ are counted.
    """
    from tests.benchmarks.engine import drafts as benchmark
    from tests.benchmarks.held_out.texts import HeldOut, find_held_out
    from tests.benchmarks.tasks.dataset import load_problems, spread
    from tests.benchmarks.tasks.runner import request_for

    from lacuna_model.backends.readers import load
    from lacuna_model.fim.loading import LoadedFim

    compared = [arm for arm in benchmark.ARMS if arm in arms.split(",")]
    if unknown := set(arms.split(",")) - set(compared):
        raise RequestError(f"--arms has no {min(unknown)!r}; there are {', '.join(benchmark.ARMS)}")
    if data is not None:
        drawn = [request_for(problem) for problem in spread(load_problems(data), cases)]
    else:
        chosen = [name for name in languages.split(",") if name]
        files = [HeldOut(path, language) for language, path in find_held_out(corpus, chosen).items()]
        drawn = [case.request for file in files for case in file.cases(cases, seed)]
    drawn = list(_part(drawn, part))
    loaded = load(model, threads=threads)
    if not isinstance(loaded, LoadedFim):
        raise RequestError("this benchmark does not apply to an open checkpoint, which verifies no drafts")
    compared = [arm for arm in compared if arm in benchmark.arms_of(loaded)]
    options = {"syntax": syntax, "together": together, "alone": alone}
    with output.counting("fills", len(drawn) * len(compared)) as advance:
        found = benchmark.bench_drafts(loaded, drawn, arms=compared, advance=advance, **options)
    if json_output:
        output.print_json(found)
    else:
        output.print_table(benchmark.table(found))


def _part(drawn: Sequence[InfillRequest], part: str) -> Sequence[InfillRequest]:
    """The gaps of part ``K/N``: every Nth one, from the Kth on."""
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", part)
    if match is None or int(match[1]) > int(match[2]):
        raise RequestError(f"--part {part!r} is not of the form K/N with K from 1 to N, as in 2/5")
    if not (own := drawn[int(match[1]) - 1 :: int(match[2])]):
        raise RequestError(f"--part {part} has no gap: there are {len(drawn)} in all")
    return own


def add_to(app: typer.Typer) -> None:
    """Registers the command."""
    app.command("drafts")(drafts)
