"""``lacuna bench unclean``: counts refused fills in files that are cut off, broken or use newer syntax."""

from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import JsonOption, ListedModelOption
from lacuna_server.console import output


def bench_unclean(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", exists=True, help="Source files, and folders.")],
    cases: Annotated[int, typer.Option(min=1, help="Cursors in each language.")] = 100,
    files: Annotated[int, typer.Option(min=1, help="The most files of a language.")] = 30,
    languages: Annotated[str, typer.Option(help="Some of them, as in go,rust.")] = "",
    noise: Annotated[float, typer.Option(min=0.0, max=1.0, help="Slots with a wrong best token; 1: all.")] = 0.15,
    seed: Annotated[int, typer.Option(help="Other files, cursors and breaks for another number.")] = 0,
    details: Annotated[bool, typer.Option("--details", help="Also the fill at every cursor, as JSON.")] = False,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Ask for the rest of a line in files that are not clean, of a model that knows it: how often it is refused."""
    from lacuna_model.backends.readers import load_tokenizer
    from lacuna_model.evaluate.bench import unclean
    from lacuna_model.syntax import language_for

    tokens, answers = load_tokenizer(model), []
    texts = unclean.sample(paths, files, seed)
    wanted = languages.split(",") if languages else list(texts)
    with output.counting("cursors", cases * len(wanted)) as advance:
        for name in wanted:
            language = language_for(name=name)
            if language is None:
                continue
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
