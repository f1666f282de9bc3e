"""The options that several subcommands share."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from lacuna_model.commands.program import MODEL_HELP
from lacuna_model.core.params import MAX_CANDIDATES, ScheduleName
from lacuna_model.hub import models
from lacuna_server.wire import layers

# Options in the groups of the help of commands, beside the first one.
_model = partial(typer.Option, rich_help_panel="Model")
_reading = partial(typer.Option, rich_help_panel="What the model reads and what is checked")
_drawing = partial(typer.Option, rich_help_panel="Drawing and time")
_diffusion = partial(typer.Option, rich_help_panel="For open diffusion checkpoints alone")
MAX_TOKENS = 1024


def configured(folder: Callable[[Any], Path]) -> Callable[[typer.Context, Any], Any]:
    """Returns the callback of an argument whose value says in which folder the settings are the options' defaults.

    It raises ConfigError for a wrong setting.
    """

    def configure(ctx: typer.Context, value: Any) -> Any:
        held = layers.settings(layers.required(layers.read(folder(value))))
        ctx.default_map = {"max_tokens": held.max_tokens, "no_workspace": not held.workspace}
        if held.model:
            ctx.default_map["model"] = held.model
        return value

    return configure


# Eager: the settings of the file's project are the defaults of the options.
FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The source file, encoded in UTF-8.",
        show_default=False,
        is_eager=True,
        callback=configured(lambda file: file.parent),
    ),
]
FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="The source files, encoded in UTF-8; - is stdin, which needs --language.",
        show_default=False,
        is_eager=True,
        callback=configured(lambda files: files[0].parent),
    ),
]
AtOption = Annotated[str, typer.Option(metavar="LINE:COL", help="Fill here: line from 1, character column from 0.")]
ServedModelOption = Annotated[
    str | None,
    _model(
        envvar=models.MODEL_VARIABLE,
        show_envvar=False,
        help=f"{MODEL_HELP[:-1]}; by default, the model of the running service, or without one {models.DEFAULT_MODEL}.",
    ),
]
ServiceOption = Annotated[
    bool | None,
    _model(
        "--service/--no-service",
        help="Start the service if it is not running, or load the model in this process; by default, use the service "
        "if it is running.",
        show_default=False,
    ),
]
WatchOption = Annotated[bool, typer.Option("--watch", help="Show every denoising step live on stderr.")]
StepsOption = Annotated[int, _diffusion(min=0, help="Run at most this many passes per block of slots; 0: no maximum.")]
TokensOption = Annotated[
    int, typer.Option(min=1, max=MAX_TOKENS, help="Limit the fill of each gap to this many tokens.")
]
CandidatesOption = Annotated[
    int, typer.Option(min=1, max=MAX_CANDIDATES, help="Find this many different fills and use the most probable one.")
]
TemperatureOption = Annotated[
    float, _drawing(min=0, max=2.0, help="Draw tokens at this temperature; 0: take the likeliest ones.")
]
SeedOption = Annotated[
    int, _drawing(min=0, max=2**63 - 1, help="Draw with this random seed; needs a --temperature above 0.")
]
ScheduleOption = Annotated[
    ScheduleName,
    _diffusion(
        metavar="RULE",
        help="Which slots a pass fills: the checkpoint's own rule (own), by the sum of their entropies (entropy), by "
        "confidence (confidence), or one at a time (single).",
    ),
]
DeadlineOption = Annotated[
    int, _drawing(min=0, help="Stop after this many milliseconds with the longest valid part; 0: no deadline.")
]
NoSyntaxOption = Annotated[
    bool, _reading("--no-syntax", help="Do not check that the file with the fill is syntactically valid.")
]


def known_language(name: str) -> str:
    """Returns the name of a language that an option names, "" for none. Raises RequestError for an unknown one."""
    from lacuna_model.languages.registry import require_language  # loads all languages

    return require_language(name).name if name else ""


LanguageOption = Annotated[
    str,
    _reading(callback=known_language, help="Set the language of the file; by default, the file name decides."),
]
WorkspaceOption = Annotated[
    Path | None,
    _reading(
        help="Read the files of this project folder as context; by default, the project that contains FILE, or without "
        "one the files beside FILE that it names.",
    ),
]
NoWorkspaceOption = Annotated[bool, _reading("--no-workspace", help="Read no file other than the one to fill.")]
