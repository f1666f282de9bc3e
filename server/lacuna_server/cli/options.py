"""The options that several subcommands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from lacuna_model.commands.program import MODEL_HELP
from lacuna_model.core.params import MAX_CANDIDATES, ScheduleName
from lacuna_model.hub import models
from lacuna_server.wire import layers

# The groups of options in the help of commands, beside the first one.
MODEL_PANEL, CONTEXT_PANEL, LIMITS_PANEL = "Model", "What the model reads and what is checked", "Drawing and time"
DIFFUSION_PANEL = "For open diffusion checkpoints alone"
MAX_TOKENS = 1024
MAX_SEED = 2**63 - 1
MAX_TEMPERATURE = 2.0


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
    typer.Option(
        rich_help_panel=MODEL_PANEL,
        envvar=models.MODEL_VARIABLE,
        show_envvar=False,
        help=f"{MODEL_HELP[:-1]}; by default, the model of the running service, or without one {models.DEFAULT_MODEL}.",
    ),
]
ServiceOption = Annotated[
    bool | None,
    typer.Option(
        "--service/--no-service",
        rich_help_panel=MODEL_PANEL,
        help="Start the service if it is not running, or load the model in this process; by default, use the service "
        "if it is running.",
        show_default=False,
    ),
]
WatchOption = Annotated[bool, typer.Option("--watch", help="Show every denoising step live on stderr.")]
StepsOption = Annotated[
    int,
    typer.Option(
        rich_help_panel=DIFFUSION_PANEL, min=0, help="Run at most this many passes per block of slots; 0: no maximum."
    ),
]
TokensOption = Annotated[
    int, typer.Option(min=1, max=MAX_TOKENS, help="Limit the fill of each gap to this many tokens.")
]
CandidatesOption = Annotated[
    int, typer.Option(min=1, max=MAX_CANDIDATES, help="Find this many different fills and use the most probable one.")
]
TemperatureOption = Annotated[
    float,
    typer.Option(
        rich_help_panel=LIMITS_PANEL,
        min=0,
        max=MAX_TEMPERATURE,
        help="Draw tokens at this temperature; 0: take the likeliest ones.",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        rich_help_panel=LIMITS_PANEL,
        min=0,
        max=MAX_SEED,
        help="Draw with this random seed; needs a --temperature above 0.",
    ),
]
ScheduleOption = Annotated[
    ScheduleName,
    typer.Option(
        metavar="RULE",
        rich_help_panel=DIFFUSION_PANEL,
        help="Which slots a pass fills: the checkpoint's own rule (own), by the sum of their entropies (entropy), by "
        "confidence (confidence), or one at a time (single).",
    ),
]
DeadlineOption = Annotated[
    int,
    typer.Option(
        rich_help_panel=LIMITS_PANEL,
        min=0,
        help="Stop after this many milliseconds with the longest valid part; 0: no deadline.",
    ),
]
NoSyntaxOption = Annotated[
    bool,
    typer.Option(
        "--no-syntax",
        rich_help_panel=CONTEXT_PANEL,
        help="Do not check that the file with the fill is syntactically valid.",
    ),
]


def known_language(name: str) -> str:
    """Returns the name of a language that an option names, "" for none. Raises RequestError for an unknown one."""
    from lacuna_model.languages.registry import require_language  # loads all languages

    return require_language(name).name if name else ""


LanguageOption = Annotated[
    str,
    typer.Option(
        rich_help_panel=CONTEXT_PANEL,
        callback=known_language,
        help="Set the language of the file; by default, the file name decides.",
    ),
]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=CONTEXT_PANEL,
        help="Read the files of this project folder as context; by default, the project that contains FILE, or without "
        "one the files beside FILE that it names.",
    ),
]
NoWorkspaceOption = Annotated[
    bool, typer.Option("--no-workspace", rich_help_panel=CONTEXT_PANEL, help="Read no file other than the one to fill.")
]
