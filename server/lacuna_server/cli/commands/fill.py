"""``lacuna complete`` and ``lacuna fill``: fill gaps of files with the engine in this process."""

from collections.abc import Sequence
from dataclasses import replace
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
    FilesArgument,
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
STDIN = Path("-")
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
    request = _request(document, regions, options, candidates=candidates, language=language, workspace=root)
    result = run(opened(model), document, request, watch=watch)
    if json_output:
        output.print_json(output.report(result, file, model))
    elif result.status != "no_valid_fill":
        output.print_fill(document, regions, result.fills)
    conclude(result)


def fill(
    paths: FilesArgument,
    write: Annotated[bool, typer.Option("--write", help="Write the result to FILE atomically.")] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Ask at every gap, and write what you take.")
    ] = False,
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
    """Fill all <<fill>> markers of each FILE together, and print the filled file; with --write, print the diff.

    With --json, each file is one line with one object. Several files need --write, --json or --interactive.
    """
    options = DecodeOptions(schedule=schedule, steps=steps, seed=seed, deadline_ms=deadline_ms, syntax=not no_syntax)
    _check(paths, language, changes=write or interactive, json_output=json_output, interactive=interactive)
    documents = [files.read(path) if path != STDIN else files.read_stdin() for path in paths]
    requests = [
        _request(
            document,
            [Region(start, end, max_tokens=max_tokens) for start, end in files.find_markers(document)],
            options,
            candidates=candidates,
            language=language,
            workspace=workspace or (None if no_workspace else find_root(document.path)),
        )
        for document in documents
    ]
    engine, usable = opened(model), True
    for document, request in zip(documents, requests, strict=True):
        result = run(engine, document, request, watch=watch)
        explain(result, f"{document.path}: " if len(paths) > 1 else "")
        if json_output:
            output.print_json(output.report(result, document.path, model))
        if result.status == "no_valid_fill":
            usable = False
        elif interactive:
            _ask(engine, document, request, result)
        else:
            _deliver(document, request.regions, result, write=write, json_output=json_output)
    if not usable:
        raise typer.Exit(FAILED)


def _check(paths: Sequence[Path], language: str, *, changes: bool, json_output: bool, interactive: bool) -> None:
    """Raises RequestError for files and options that do not fit together."""
    if interactive and json_output:
        raise RequestError("--interactive asks at every gap; it cannot be combined with --json")
    if len(paths) > 1 and not (changes or json_output):
        raise RequestError("several files need --write, --json or --interactive")
    if STDIN in paths and (len(paths) > 1 or changes):
        raise RequestError(
            "- reads stdin and writes stdout; it cannot be combined with files, --write or --interactive"
        )
    if STDIN in paths and not language:
        raise RequestError("- needs --language, because stdin has no file name")


def _deliver(
    document: Document, regions: Sequence[Region], result: InfillResult, *, write: bool, json_output: bool
) -> None:
    """Writes or prints the filled file."""
    if write:
        files.write(document, result.text)
    if json_output:
        return
    if write:
        output.print_diff(document, result.text)
    elif document.path == STDIN:
        output.print_exact(result.text)
    else:
        output.print_document(document, regions, result)


def _ask(engine: "Engine", document: Document, request: InfillRequest, result: InfillResult) -> None:
    """Asks for each gap, and writes the taken fills."""
    from lacuna_server.cli.commands.fill_interactive import Review

    def again(request: InfillRequest) -> InfillResult:
        return run(engine, replace(document, text=request.text), request)

    text = Review(document, request, result.fills, again).text()
    if text != document.text:
        files.write(document, text)


def opened(model: str) -> "Engine":
    """Loads the engine, unless the model is not on this machine."""
    models.require(model)  # the cheap check first: torch takes seconds to load
    from rich.console import Console

    with Console(stderr=True).status(f"loading {model}"):
        return load_engine(model)


def _request(
    document: Document,
    regions: Sequence[Region],
    options: DecodeOptions,
    *,
    candidates: int,
    language: str,
    workspace: Path | None,
) -> InfillRequest:
    """Returns the request; ``workspace`` is the project's folder, whose files are read as context.

    Raises RequestError if it is not a folder.
    """
    if workspace is not None and not workspace.is_dir():
        raise RequestError(f"{workspace} is not a folder")
    return InfillRequest(
        text=document.text,
        regions=tuple(regions),
        candidates=candidates,
        path=str(document.path),
        language=language,
        options=options,
        workspace=str(workspace or ""),
    )


def run(engine: "Engine", document: Document, request: InfillRequest, *, watch: bool = False) -> InfillResult:
    """Fills the regions and returns the result with the document's line endings."""
    from rich.console import Console

    console = Console(stderr=True)
    if request.workspace:
        with console.status(f"reading {request.workspace}"):
            engine.workspaces.read(request.workspace, WORKSPACE_SECONDS)
    if watch:
        from lacuna_server.console.live import LiveView

        with LiveView(console, document, request.regions) as view:
            result = view.follow(engine.stream(request))
    else:
        result = engine.fill(request)
    return output.in_document(document, request.regions, result)


def load_engine(model: str) -> "Engine":
    """Loads the engine with a model; tests replace this function."""
    from lacuna_model.engine import Engine

    held = layers.settings(layers.read(None))
    return Engine.load(model, threads=held.threads, device=held.device)


def explain(result: InfillResult, whose: str = "") -> None:
    """Explains the status on stderr; ``whose`` begins the line."""
    if result.status == "no_valid_fill":
        output.say(whose + (result.message or "no valid fill found"))
    elif result.status == "deadline":
        output.say(f"{whose}the deadline ran out: this is the longest valid part")
    elif result.message:
        output.say(whose + result.message)


def conclude(result: InfillResult) -> None:
    """Explains the status on stderr. Raises typer.Exit where the fill failed."""
    explain(result)
    if result.status == "no_valid_fill":
        raise typer.Exit(FAILED)


def add_to(app: typer.Typer) -> None:
    """Registers both commands."""
    app.command()(complete)
    app.command()(fill)
