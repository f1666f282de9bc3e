"""``lacuna bench unclean``: counts refused fills in files that are cut off, broken or use newer syntax."""

from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import JsonOption, ListedModelOption, NoiseOption
from lacuna_server.console import output


def bench_unclean(
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
    from lacuna_model.backends.readers import load_tokenizer
    from lacuna_model.evaluate.constraint import unclean
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


def add_to(bench_app: typer.Typer) -> None:
    """Adds the command."""
    bench_app.command("unclean")(bench_unclean)
