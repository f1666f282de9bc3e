"""``lacuna complete`` and ``lacuna fill``: fill gaps of files."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lacuna_model.commands import output
from lacuna_model.commands.program import BAD_INPUT, JsonOption
from lacuna_model.core import regions as region_groups
from lacuna_model.core.context import WindowOptions
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import (
    MAX_CANDIDATES,
    DecodeOptions,
    FillGaps,
    FillStats,
    InfillRequest,
    InfillResult,
    Region,
    Snippet,
    Status,
    Task,
)
from lacuna_model.files.opening import find_root
from lacuna_model.snippets.defined import beside
from lacuna_model.snippets.format import PieceCounter
from lacuna_server import files
from lacuna_server.cli import engines, options, terminal
from lacuna_server.cli.engines import FillEngine
from lacuna_server.files import FileText
from lacuna_server.wire.config import Settings

FAILED = 1
STDIN = Path("-")
DEFAULTS = DecodeOptions()
DEFAULT_TOKENS = Settings().max_tokens
# The time in which one command reads the workspace; what it has read is kept for the next command.
WORKSPACE_SECONDS = 4.0
Pair = tuple[FileText, InfillRequest]


def complete(
    file: options.FileArgument,
    at: options.AtOption,
    json_output: JsonOption = False,
    watch: options.WatchOption = False,
    max_tokens: options.TokensOption = DEFAULT_TOKENS,
    candidates: options.CandidatesOption = 1,
    model: options.ServedModelOption = None,
    service: options.ServiceOption = None,
    temperature: options.TemperatureOption = DEFAULTS.temperature,
    seed: options.SeedOption = DEFAULTS.seed,
    deadline_ms: options.DeadlineOption = DEFAULTS.deadline_ms,
    no_syntax: options.NoSyntaxOption = False,
    language: options.LanguageOption = "",
    workspace: options.WorkspaceOption = None,
    no_workspace: options.NoWorkspaceOption = False,
    schedule: options.ScheduleOption = DEFAULTS.schedule,
    steps: options.StepsOption = DEFAULTS.steps,
) -> None:
    """Fill one gap, at LINE:COL of FILE, and print the fill; on a terminal with the lines around it.

    At a <<fill>> marker, that marker is the gap. If text follows the gap on its line, the fill has one line.
    """
    decoding = DecodeOptions(
        schedule, steps, temperature=temperature, seed=seed, deadline_ms=deadline_ms, syntax=not no_syntax
    )
    document = files.read(file)
    regions = (files.gap_at(document, files.offset_at(document, at), max_tokens),)
    request = requested(document, regions, FillGaps(candidates), decoding, language, workspace, no_workspace)
    with engines.opened(model, service) as (engine, name):
        result = run(engine, document, request, watch=watch)
    if json_output:
        output.print_json(terminal.report(request, result, file, name))
    elif result.status != "no_valid_fill":
        terminal.print_fills(document, regions, result.fills)
    name_empty(document, regions, result)
    conclude(result)


def fill(
    paths: options.FilesArgument,
    write: Annotated[bool, typer.Option("--write", help="Write the result to FILE atomically.")] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Ask at every gap, and write what you take.")
    ] = False,
    each: Annotated[
        bool, typer.Option("--each", help="Fill the gaps one after the other; a marker that has no valid fill stays.")
    ] = False,
    json_output: JsonOption = False,
    watch: options.WatchOption = False,
    max_tokens: options.TokensOption = DEFAULT_TOKENS,
    candidates: options.CandidatesOption = 1,
    model: options.ServedModelOption = None,
    service: options.ServiceOption = None,
    temperature: options.TemperatureOption = DEFAULTS.temperature,
    seed: options.SeedOption = DEFAULTS.seed,
    deadline_ms: options.DeadlineOption = DEFAULTS.deadline_ms,
    no_syntax: options.NoSyntaxOption = False,
    language: options.LanguageOption = "",
    workspace: options.WorkspaceOption = None,
    no_workspace: options.NoWorkspaceOption = False,
    schedule: options.ScheduleOption = DEFAULTS.schedule,
    steps: options.StepsOption = DEFAULTS.steps,
) -> None:
    """Fill all <<fill>> markers of each FILE together, and print the filled file; with --write, print the diff.

    If text follows a marker on its line, its fill has one line.
    With --json, each file is one line with one object. Several files need --write, --json or --interactive.
    """
    decoding = DecodeOptions(
        schedule, steps, temperature=temperature, seed=seed, deadline_ms=deadline_ms, syntax=not no_syntax
    )
    changes = write or interactive
    for is_wrong, why in (
        (interactive and json_output, "--interactive asks at every gap; it cannot be combined with --json"),
        (interactive and each, "--interactive asks at every gap; it cannot be combined with --each"),
        (len(paths) > 1 and not (changes or json_output), "several files need --write, --json or --interactive"),
        (
            STDIN in paths and (len(paths) > 1 or changes),
            "- reads stdin and writes stdout; it cannot be combined with files, --write or --interactive",
        ),
        (STDIN in paths and not language, "- needs --language, because stdin has no file name"),
    ):
        if is_wrong:
            raise RequestError(why)
    documents = [files.read(path) if path != STDIN else files.read_stdin() for path in paths]
    if changes:
        files.check_writable(document.path for document in documents)
    task = FillGaps(candidates)
    pairs = [
        (one, requested(one, files.marked(one, max_tokens), task, decoding, language, workspace, no_workspace))
        for one in documents
    ]
    unwritten = 0
    with engines.opened(model, service) as (engine, name):
        if interactive:
            usable, unwritten = _ask(engine, pairs, watch=watch)
        else:
            usable = True
            for document, request in pairs:
                result = (one_by_one if each else run)(engine, document, request, watch=watch)
                whose = f"{document.path}: " if len(pairs) > 1 else ""
                explain(result, whose)
                name_empty(document, request.regions, result, whose)
                if json_output:
                    output.print_json(terminal.report(request, result, document.path, name))
                if result.status == "no_valid_fill":
                    usable = False
                    if len(request.regions) > 1 and not each:
                        output.say(f"lacuna fill --each {document.path} fills the gaps that can be filled")
                if result.status != "no_valid_fill" or each:
                    unwritten += not _deliver(document, request, result, write=write, json_output=json_output)
    if unwritten:
        raise typer.Exit(BAD_INPUT)
    if not usable:
        raise typer.Exit(FAILED)


def _deliver(
    document: FileText, request: InfillRequest, result: InfillResult, *, write: bool, json_output: bool
) -> bool:
    """Writes or prints the filled file; returns False where it cannot be written."""
    text = request.filled(result.fills)
    is_done = not write or _written(document, text)
    if json_output:
        return is_done
    if write:
        terminal.print_diff(document, text)
    elif document.path == STDIN:
        output.print_exact(text)
    else:
        terminal.print_filled(document, request.regions, result.fills, text)
    return is_done


def _written(document: FileText, text: str) -> bool:
    """Writes a file; says why and returns False where that cannot be done, so that others are."""
    try:
        files.write(document, text)
    except RequestError as error:
        output.say(str(error))
        return False
    return True


def _ask(engine: FillEngine, pairs: Sequence[Pair], *, watch: bool) -> tuple[bool, int]:
    """Asks for each gap, and writes the taken fills at the end.

    Returns whether every document has a valid fill, and how many files could not be written.
    """
    usable, key = True, ""
    texts: list[tuple[FileText, str]] = []
    for document, request in pairs:
        if key == "q":
            break
        result = run(engine, document, request, watch=watch)
        explain(result, f"{document.path}: " if len(pairs) > 1 else "")
        if result.status == "no_valid_fill":
            usable = False
            continue
        shown, taken = [*result.fills], [*region_groups.standing(request.text.encode(), request.regions)]
        for index in range(len(shown)):
            if key not in ("a", "q"):
                key, shown[index] = _decided(engine, document, request, shown, index)
            if key in ("y", "a"):
                taken[index] = shown[index]
        texts.append((document, request.filled(taken)))
    unwritten = sum(not _written(document, text) for document, text in texts if text != document.text)
    return usable, unwritten


def _decided(
    engine: FillEngine, document: FileText, request: InfillRequest, shown: list[str], index: int
) -> tuple[str, str]:
    """Asks about one gap, which the question names by its number; ``shown`` are the present fills of all gaps."""
    seen = {shown[index]}

    def other(text: str) -> str | None:
        """Returns a fill that was not shown yet, with the other gaps as they are filled now."""
        more = msgspec.structs.replace(request, task=FillGaps(min(len(seen) + 1, MAX_CANDIDATES)))
        result = _run_one(engine, document, more, shown, index)
        if result.status == "no_valid_fill":
            return None
        found = [*result.fills, *(fills[0] for fills in result.alternatives)]
        new = next((text for text in found if text not in seen), None)
        seen.update([new] if new is not None else [])
        return new

    return terminal.decided(
        shown[index],
        lambda text: terminal.print_fills(document, [request.regions[index]], [text]),
        lambda text: f"{index + 1}/{len(shown)} {document.path}",
        lambda text: terminal.edited(document, text),
        other,
    )


def requested(
    document: FileText,
    regions: Sequence[Region],
    task: Task,
    decoding: DecodeOptions,
    language: str,
    workspace: Path | None,
    no_workspace: bool,
) -> InfillRequest:
    """Returns the request; ``workspace`` is the project's folder, by default the one that has the document.

    Without a project, gaps are filled with what the files beside the document offer that it names. Raises RequestError
    if the workspace is not a folder.
    """
    root = workspace or (None if no_workspace else find_root(document.path))
    if root is not None and not root.is_dir():
        raise RequestError(f"{root} is not a folder")
    found = tuple[Snippet, ...]()
    if root is None and not no_workspace and isinstance(task, FillGaps):
        pieces, budget = PieceCounter(), WindowOptions().snippets
        found = beside(document.path, document.text, regions[0].start, language, tokenizer=pieces, budget=budget)
    return InfillRequest(
        document.text,
        tuple(regions),
        task,
        path=str(document.path),
        language=language,
        options=decoding,
        snippets=found,
        workspace=str(root or ""),
    )


def run(engine: FillEngine, document: FileText, request: InfillRequest, *, watch: bool = False) -> InfillResult:
    """Fills the regions and returns the result with the document's line endings, those of alternatives included.

    A deadline that leaves every region as it was is no valid fill.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if request.workspace:
        with console.status(f"reading {request.workspace}"):
            engine.workspaces.read(request.workspace, WORKSPACE_SECONDS)
    if watch:
        from lacuna_server.cli.live import follow

        result = follow(console, document, request.regions, engine.stream(request))
    else:
        result = engine.fill(request)
    kept = region_groups.standing(request.text.encode(), request.regions)
    if result.status == "deadline" and not request.rewrites and tuple(result.fills) == kept:
        why = result.message or "the deadline ran out before anything valid was written"
        return msgspec.structs.replace(result, status="no_valid_fill", alternatives=(), message=why)
    fills, *others = (files.adapted(document, request, one) for one in (result.fills, *result.alternatives))
    return msgspec.structs.replace(result, fills=fills, alternatives=tuple(others))


def _run_one(
    engine: FillEngine,
    document: FileText,
    request: InfillRequest,
    fills: Sequence[str],
    index: int,
    *,
    watch: bool = False,
) -> InfillResult:
    """Fills one region, with these fills in the others."""
    data, own = document.text.encode(), range(index, index + 1)
    around, gap = region_groups.text_for(data, request.regions, fills, own, fills[index + 1 :])
    alone = msgspec.structs.replace(request, text=around.decode(), regions=tuple(gap))
    return run(engine, replace(document, text=alone.text), alone, watch=watch)


def one_by_one(engine: FillEngine, document: FileText, request: InfillRequest, *, watch: bool = False) -> InfillResult:
    """Fills one region after the other, and names those that have no valid fill and stay as they are."""
    fills = [*region_groups.standing(request.text.encode(), request.regions)]
    results, left = list[InfillResult](), list[str]()
    for index, region in enumerate(request.regions):
        one = _run_one(engine, document, request, fills, index, watch=watch)
        results.append(one)
        if one.status == "no_valid_fill":
            left.append(f"line {_line(document, region)}: {one.message or 'no valid fill found'}")
        else:
            fills[index] = one.fills[0]
    is_late = any(one.status == "deadline" for one in results)
    return InfillResult(
        "no_valid_fill" if left else "deadline" if is_late else "ok",
        tuple(fills),
        sum((one.stats for one in results), FillStats()),
        "; ".join(left),
        confidence=tuple(next(iter(one.confidence), ()) for one in results),
        warnings=tuple(one.warning for one in results) if any(one.warning for one in results) else (),
    )


def _line(document: FileText, region: Region) -> int:
    """Returns the line, from 1, that a region begins in."""
    return document.text.encode().count(b"\n", 0, region.start) + 1


def name_empty(document: FileText, regions: Sequence[Region], result: InfillResult, whose: str = "") -> None:
    """Names on stderr the lines whose gaps the model has left empty."""
    fills = result.fills if result.status == "ok" else ()
    for region, fill in zip(regions, fills, strict=False):
        if not fill.strip():
            output.say(f"{whose}line {_line(document, region)}: the model leaves this gap empty")


def explain(result: InfillResult, whose: str = "") -> None:
    """Explains the status on stderr; ``whose`` begins the line."""
    usual = {"no_valid_fill": "no valid fill found", "deadline": "the deadline ran out: this is the longest valid part"}
    if said := result.message or usual.get(result.status):
        output.say(whose + said)
    if result.warning:
        output.say(f"{whose}look at the diff: {result.warning}")


def conclude(result: InfillResult, advice: Iterable[str] = (), failures: Sequence[Status] = ("no_valid_fill",)) -> None:
    """Explains the status on stderr. Where it is one of the ``failures``, gives the advice and raises typer.Exit."""
    explain(result)
    if result.status in failures:
        for line in advice:
            output.say(line)
        raise typer.Exit(FAILED)
