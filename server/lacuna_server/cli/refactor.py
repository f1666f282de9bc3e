"""``lacuna refactor``: rewrites many places in many files by one template, with holes that the engine fills."""

from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.commands import output
from lacuna_model.commands.program import JsonOption
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions
from lacuna_server.cli import engines, options

DEFAULTS = DecodeOptions()
# A fill of several words is seldom what a person would write word for word: one below this is mostly nonsense.
MIN_CONFIDENCE = 1e-6


def refactor(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARG",
            help="PATTERN: the code to find, with metavariables such as $NAME or $$$ARGS. TEMPLATE: the new code, with "
            "the same metavariables and holes <<fill>>. PATH: a file, folder or glob; by default, the current folder.",
            show_default=False,
            is_eager=True,
            callback=options.configured(lambda words: Path()),
        ),
    ] = None,
    lang: Annotated[
        str,
        typer.Option(
            callback=options.known_language,
            help="Set the language of the pattern or query, and search only files in it.",
        ),
    ] = "",
    query: Annotated[
        str, typer.Option(help="Find places by this tree-sitter query; its capture @place is replaced. Needs --lang.")
    ] = "",
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="FILE:LINE:COL-LINE:COL",
            help="Rewrite this place: line from 1, column from 0. May be repeated.",
        ),
    ] = None,
    recipe: Annotated[str, typer.Option(help="Run this ready-made refactor; see --list-recipes.")] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a setting of the recipe. May be repeated."),
    ] = None,
    instruction: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Rewrite the lines of every place as this sentence says; then there is no TEMPLATE."
        ),
    ] = None,
    list_recipes: Annotated[
        bool, typer.Option("--list-recipes", help="List the recipes with their languages and settings, and exit.")
    ] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Ask at every place: apply, leave, edit or fill it again.")
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the changes without asking, to all files or to none.")
    ] = False,
    min_confidence: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Leave a place as it is if the probability that its fills are right word for word is below this; "
            "0: change all.",
        ),
    ] = MIN_CONFIDENCE,
    json_output: JsonOption = False,
    model: options.ServedModelOption = None,
    service: options.ServiceOption = None,
    temperature: options.TemperatureOption = DEFAULTS.temperature,
    seed: options.SeedOption = DEFAULTS.seed,
    deadline_ms: options.DeadlineOption = DEFAULTS.deadline_ms,
    schedule: options.ScheduleOption = DEFAULTS.schedule,
    steps: options.StepsOption = DEFAULTS.steps,
) -> None:
    """Rewrite many places by one template, let the model fill its <<fill>> holes, and show the diff.

    lacuna refactor PATTERN TEMPLATE [PATH]...
    lacuna refactor --query QUERY --lang LANG TEMPLATE [PATH]...
    lacuna refactor --range FILE:LINE:COL-LINE:COL [TEMPLATE]
    lacuna refactor --recipe NAME [PATH]...
    lacuna refactor --instruction TEXT PATTERN [PATH]...

    Files change only with --apply, with --interactive, or after you confirm the diff.
    """
    # Imported here, because the grammars would slow down every other command.
    from lacuna_server.cli import refactor_run
    from lacuna_server.refactor import journal

    if list_recipes:
        refactor_run.print_recipes(json_output=json_output)
        return
    if interactive and (json_output or apply):
        raise RequestError("--interactive asks at every place; it cannot be combined with --json or --apply")
    for line in journal.recover():
        output.say(line)
    decoding = DecodeOptions(
        schedule=schedule, steps=steps, temperature=temperature, seed=seed, deadline_ms=deadline_ms
    )
    refactoring, paths = refactor_run.chosen(
        words or [], lang, query, ranges or [], recipe, settings or [], instruction
    )
    with ExitStack() as stack:
        engine = cache(lambda: stack.enter_context(engines.opened(model, service))[0])
        plan, ask = refactor_run.propose(
            refactoring, paths, decoding, engine, forced=lang, min_confidence=min_confidence
        )
        refactor_run.conclude(plan, ask, interactive=interactive, apply=apply, json_output=json_output)
