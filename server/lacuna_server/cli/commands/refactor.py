"""``lacuna refactor``: rewrites many places in many files by one template, with holes that the engine fills."""

from typing import Annotated

import typer

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import (
    DeadlineOption,
    JsonOption,
    ModelOption,
    ScheduleOption,
    SeedOption,
    StepsOption,
)
from lacuna_server.console import output

DEFAULTS = DecodeOptions()


def refactor(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATTERN] [TEMPLATE] [PATH]...",
            help="What to look for, what it becomes, and files, folders or globs (by default this folder). "
            "--query replaces PATTERN, --range PATTERN and PATH, --recipe PATTERN and TEMPLATE.",
            show_default=False,
        ),
    ] = None,
    lang: Annotated[str, typer.Option("--lang", help="The language of the pattern or query.")] = "",
    query: Annotated[str, typer.Option("--query", help="A tree-sitter query with a capture @place.")] = "",
    ranges: Annotated[
        list[str] | None, typer.Option("--range", metavar="FILE:L:C-L:C", help="A place; line from 1, column from 0.")
    ] = None,
    recipe: Annotated[str, typer.Option("--recipe", help="A ready-made refactor.")] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the recipe.")
    ] = None,
    list_recipes: Annotated[bool, typer.Option("--list-recipes", help="List the ready-made refactors.")] = False,
    interactive: Annotated[bool, typer.Option("--interactive", "-i", help="Ask at every place.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Write without asking, all files or none.")] = False,
    json_output: JsonOption = False,
    steps: StepsOption = DEFAULTS.steps,
    model: ModelOption = DEFAULT_MODEL,
    seed: SeedOption = DEFAULTS.seed,
    schedule: ScheduleOption = DEFAULTS.schedule,
    deadline_ms: DeadlineOption = DEFAULTS.deadline_ms,
) -> None:
    """Rewrite every place that matches, fill the holes <<fill>> of the template, and show what would change."""
    # Imported here, because the grammars and ast-grep would slow down every other command.
    from lacuna_server.cli.commands import refactor_run
    from lacuna_server.refactor import journal

    if list_recipes:
        refactor_run.print_recipes(json_output=json_output)
        return
    if interactive and (json_output or apply):
        raise RequestError("--interactive asks; it does not go with --json or --apply")
    for line in journal.recover():
        output.say(line)
    options = DecodeOptions(schedule=schedule, steps=steps, seed=seed, deadline_ms=deadline_ms)
    refactoring, paths = refactor_run.chosen(words or [], lang, query, ranges or [], recipe, settings or [])
    plan = refactor_run.propose(refactoring, paths, options, forced=lang, model=model)
    refactor_run.conclude(plan, interactive=interactive, apply=apply, json_output=json_output)


def add_to(app: typer.Typer) -> None:
    """Registers the command."""
    app.command()(refactor)
