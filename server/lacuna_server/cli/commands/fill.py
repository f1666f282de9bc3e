"""``lacuna complete`` and ``lacuna fill``: fill gaps of one file with the engine in this process."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions, InfillRequest, InfillResult, Region
from lacuna_model.core.regions import at_cursor
from lacuna_model.files.root import find_root
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import (
    CandidatesOption,
    DeadlineOption,
    FileArgument,
    JsonOption,
    LanguageOption,
    ModelOption,
    NoSyntaxOption,
    NoWorkspaceOption,
    ScheduleOption,
    SeedOption,
    StepsOption,
    TokensOption,
    WatchOption,
    WorkspaceOption,
)
from lacuna_server.console import files, output
from lacuna_server.console.files import Document
from lacuna_server.wire import layers
from lacuna_server.wire.settings import Settings

if TYPE_CHECKING:
    from lacuna_model.engine import Engine

FAILED = 1
DEFAULTS = DecodeOptions()
DEFAULT_TOKENS = Settings().max_tokens
# The time in which one command reads the workspace; what it has read is kept for the next command.
WORKSPACE_SECONDS = 4.0


def complete(
    file: FileArgument,
    at: Annotated[
        str, typer.Option("--at", metavar="LINE:COL", help="Fill here: line from 1, character column from 0.")
    ],
    json_output: JsonOption = False,
    watch: WatchOption = False,
    steps: StepsOption = DEFAULTS.steps,
    max_tokens: TokensOption = DEFAULT_TOKENS,
    candidates: CandidatesOption = 1,
    model: ModelOption = DEFAULT_MODEL,
    seed: SeedOption = DEFAULTS.seed,
    schedule: ScheduleOption = DEFAULTS.schedule,
    deadline_ms: DeadlineOption = DEFAULTS.deadline_ms,
    no_syntax: NoSyntaxOption = False,
    language: LanguageOption = "",
    workspace: WorkspaceOption = None,
    no_workspace: NoWorkspaceOption = False,
) -> None:
    """Fill one gap, at LINE:COL of FILE, and print the fill; on a terminal with the lines around it.

    If text follows the gap on its line, the fill has one line.
    """
    options = DecodeOptions(schedule=schedule, steps=steps, seed=seed, deadline_ms=deadline_ms, syntax=not no_syntax)
    document = files.read(file)
    offset = files.offset_at(document, at)
    regions = (at_cursor(offset, files.line_behind(document, offset), max_tokens),)
    root = workspace or (None if no_workspace else find_root(file))
    result = run(
        document, regions, options, candidates=candidates, model=model, language=language, workspace=root, watch=watch
    )
    if json_output:
        output.print_json(output.report(result, file, model))
    elif result.status != "no_valid_fill":
        output.print_fill(document, regions, result.fills)
    conclude(result)


def fill(
    file: FileArgument,
    write: Annotated[bool, typer.Option("--write", help="Write the result to FILE atomically.")] = False,
    json_output: JsonOption = False,
    watch: WatchOption = False,
    steps: StepsOption = DEFAULTS.steps,
    max_tokens: TokensOption = DEFAULT_TOKENS,
    candidates: CandidatesOption = 1,
    model: ModelOption = DEFAULT_MODEL,
    seed: SeedOption = DEFAULTS.seed,
    schedule: ScheduleOption = DEFAULTS.schedule,
    deadline_ms: DeadlineOption = DEFAULTS.deadline_ms,
    no_syntax: NoSyntaxOption = False,
    language: LanguageOption = "",
    workspace: WorkspaceOption = None,
    no_workspace: NoWorkspaceOption = False,
) -> None:
    """Fill all <<fill>> markers in FILE together, and print the filled file; with --write, print the diff."""
    options = DecodeOptions(schedule=schedule, steps=steps, seed=seed, deadline_ms=deadline_ms, syntax=not no_syntax)
    document = files.read(file)
    regions = tuple(Region(start, end, max_tokens=max_tokens) for start, end in files.find_markers(document))
    root = workspace or (None if no_workspace else find_root(file))
    result = run(
        document, regions, options, candidates=candidates, model=model, language=language, workspace=root, watch=watch
    )
    usable = result.status != "no_valid_fill"
    if write and usable:
        files.write(document, result.text)
    if json_output:
        output.print_json(output.report(result, file, model))
    elif usable and write:
        output.print_diff(document, result.text)
    elif usable:
        output.print_document(document, regions, result)
    conclude(result)


def run(
    document: Document,
    regions: Sequence[Region],
    options: DecodeOptions,
    *,
    candidates: int,
    model: str,
    language: str,
    workspace: Path | None,
    watch: bool,
) -> InfillResult:
    """Loads the engine, fills the regions and returns the result with the document's line endings.

    ``workspace`` is the project's folder, whose files are read as context. Raises RequestError if it is not a folder.
    """
    if workspace is not None and not workspace.is_dir():
        raise RequestError(f"{workspace} is not a folder")
    models.require(model)  # the cheap check first: torch takes seconds to load
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(f"loading {model}"):
        engine = load_engine(model)
    if workspace is not None:
        with console.status(f"reading {workspace}"):
            engine.workspaces.read(str(workspace), WORKSPACE_SECONDS)
    request = InfillRequest(
        text=document.text,
        regions=tuple(regions),
        candidates=candidates,
        path=str(document.path),
        language=language,
        options=options,
        workspace=str(workspace or ""),
    )
    if watch:
        from lacuna_server.console.live import LiveView

        with LiveView(console, document, regions) as view:
            result = view.follow(engine.stream(request))
    else:
        result = engine.fill(request)
    return output.in_document(document, regions, result)


def load_engine(model: str) -> "Engine":
    """Loads the engine with a model; tests replace this function."""
    from lacuna_model.engine import Engine

    held = layers.settings(layers.read(None))
    return Engine.load(model, threads=held.threads, device=held.device)


def conclude(result: InfillResult) -> None:
    """Explains the status on stderr. Raises typer.Exit where the fill failed."""
    if result.status == "no_valid_fill":
        output.say(result.message or "no valid fill found")
        raise typer.Exit(FAILED)
    if result.status == "deadline":
        output.say("the deadline ran out: this is the longest valid part")
    elif result.message:
        output.say(result.message)


def add_to(app: typer.Typer) -> None:
    """Registers both commands."""
    app.command()(complete)
    app.command()(fill)
