"""The commands that measure the constraint: ``syntax`` and ``unclean``."""

from pathlib import Path
from typing import Annotated

import typer
from tests.benchmarks.commands.options import ListedModelOption, NoiseOption

from lacuna_model.commands import output
from lacuna_model.commands.options import JsonOption
from lacuna_model.core.errors import RequestError
from lacuna_model.hub.models import DEFAULT_MODEL
from training.options import ThreadsOption


def syntax(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Source files; the file name decides the language.")
    ],
    gaps: Annotated[str, typer.Option(help="Run cases with these numbers of gaps.")] = "1,2,3,8",
    slots: Annotated[str, typer.Option(help="Run cases with these numbers of slots per gap.")] = "4,16,48",
    cases: Annotated[int, typer.Option(min=1, help="Run this many cases for each row of the table.")] = 25,
    noise: NoiseOption = 0.15,
    foresight: Annotated[
        int, typer.Option(min=0, help="Let the model write only this many tokens at once; 0: all.")
    ] = 0,
    lines: Annotated[int, typer.Option(min=0, help="Repeat each file until it has this many lines.")] = 0,
    seed: Annotated[int, typer.Option(help="Draw the cases with this random seed.")] = 0,
    engine: Annotated[
        bool, typer.Option("--engine", help="Fill with the real model, not with a simulated one.")
    ] = False,
    threads: ThreadsOption = 0,
    by_language: Annotated[bool, typer.Option("--by-language", help="Print one row per language.")] = False,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Fill gaps with a simulated model, with and without the constraint: validity, cost and compiler checks."""
    import gc

    from tests.benchmarks.constraint import syntax as benchmark

    from lacuna_model.backends.readers import load_tokenizer
    from lacuna_model.engine import Engine

    fill = Engine.load(model, threads=threads).stream if engine else None
    tokens = load_tokenizer(model)
    gc.freeze()  # as the service does: collections do not scan what is loaded so far
    modes = benchmark.ENGINE_MODES if engine else benchmark.MODES
    texts = source_texts(files, lines)
    gap_counts, slot_counts = [int(n) for n in gaps.split(",")], [int(n) for n in slots.split(",")]
    cells = []
    with output.counting("syntax", len(texts) * len(gap_counts) * len(slot_counts) * len(modes)) as advance:
        for cell in benchmark.run(
            texts,
            tokens,
            fill=fill,
            cases=cases,
            noise=noise,
            foresight=foresight,
            gaps=gap_counts,
            slots=slot_counts,
            seed=seed,
        ):
            cells.append(cell)
            advance()
    shown = [cell for cell in cells if (cell.language != benchmark.ALL) == by_language]
    if json_output:
        output.print_json({"cells": shown})
    else:
        output.print_table(benchmark.table(shown))


def source_texts(paths: list[Path], lines: int) -> dict[str, list[bytes]]:
    """Returns the files' texts by language, each repeated until it has ``lines`` lines.

    Raises RequestError for a file of unknown language.
    """
    from tests.benchmarks.constraint.syntax import grown

    from lacuna_model.syntax import language_for

    texts: dict[str, list[bytes]] = {}
    for path in paths:
        language = language_for(str(path))
        if language is None:
            raise RequestError(f"{path}: no language is known for this name")
        texts.setdefault(language.name, []).append(grown(path.read_bytes(), lines))
    return texts


def unclean(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", exists=True, help="Source files, or folders of them.")
    ],
    cases: Annotated[int, typer.Option(min=1, help="Use this many cursors per language.")] = 100,
    files: Annotated[int, typer.Option(min=1, help="Use at most this many files per language.")] = 30,
    languages: Annotated[str, typer.Option(help="Use only these languages, such as go,rust.")] = "",
    noise: NoiseOption = 0.15,
    seed: Annotated[int, typer.Option(help="Draw the files, cursors and errors with this random seed.")] = 0,
    details: Annotated[
        bool, typer.Option("--details", help="Print JSON that includes the fill at every cursor.")
    ] = False,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Complete lines in files that are cut off, broken or in newer syntax, and count the fills that are refused."""
    from tests.benchmarks.constraint import unclean

    from lacuna_model.backends.readers import load_tokenizer
    from lacuna_model.languages.registry import require_language

    tokens, answers = load_tokenizer(model), []
    texts = unclean.sample(paths, files, seed)
    wanted = languages.split(",") if languages else list(texts)
    with output.counting("cursors", cases * len(wanted)) as advance:
        for name in wanted:
            language = require_language(name)
            for typing in unclean.cases(texts.get(language.name, ()), language, tokens, cases, seed):
                answers.append(unclean.answer(typing, tokens, noise, seed))
                advance()
    found = unclean.rows(answers)
    if json_output or details:
        output.print_json({"rows": found, "answers": answers if details else []})
    else:
        output.print_table(unclean.table(found))


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("syntax")(syntax)
    app.command("unclean")(unclean)
