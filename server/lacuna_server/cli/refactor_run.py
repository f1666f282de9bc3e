"""The steps of ``lacuna refactor``: choose a refactoring, propose edits, show them, ask about them, write them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
import typer

from lacuna_model.commands import output
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions, InfillRequest, InfillResult
from lacuna_server import files
from lacuna_server.cli import terminal
from lacuna_server.cli.engines import FillEngine
from lacuna_server.files import FileText
from lacuna_server.refactor.fill import FileFill, fill_files
from lacuna_server.refactor.places.gather import gather
from lacuna_server.refactor.plan import FileEdits, Plan, PlannedEdit
from lacuna_server.refactor.plan import apply as write
from lacuna_server.refactor.recipes import by_recipe, described, recipes
from lacuna_server.refactor.rewriting.refactoring import (
    Refactoring,
    by_instruction,
    by_place,
    by_structure,
    by_syntax,
    places,
)

FAILED = 1
RANGE = re.compile(r"(?P<file>.+):(?P<start>\d+:\d+)-(?P<end>\d+:\d+)")
WHOLE_FILL = "<<fill>>"


def chosen(
    words: Sequence[str],
    lang: str,
    query: str,
    ranges: Sequence[str],
    recipe: str,
    settings: Sequence[str],
    instruction: str | None = None,
) -> tuple[Refactoring, Sequence[str]]:
    """Returns the refactoring that the command line asks for, and the paths to search.

    ``words`` are the positional arguments: pattern, template and paths, as far as the options do not replace them.
    Raises RequestError where the options do not fit together.
    """
    if instruction is not None:
        if recipe:
            raise RequestError("--instruction and --recipe cannot be combined")
        at = 0 if query or ranges else 1
        found, paths = chosen([*words[:at], WHOLE_FILL, *words[at:]], lang, query, ranges, "", settings)
        return by_instruction(found, instruction), paths
    given = [name for name, value in (("--query", query), ("--range", ranges), ("--recipe", recipe)) if value]
    if len(given) > 1:
        raise RequestError(f"{' and '.join(given)} cannot be combined")
    if settings and not recipe:
        raise RequestError("--set needs --recipe")
    if recipe:
        for text in settings:
            if "=" not in text:
                raise RequestError(f"--set expects NAME=VALUE, not {text!r}")
        return by_recipe(recipe, dict(text.split("=", 1) for text in settings)), words or ["."]
    if ranges:
        if len(words) > 1:
            raise RequestError("--range names the file itself; give at most one argument, the template")
        return ranged(ranges, words[0] if words else WHOLE_FILL)
    if not query:
        if len(words) < 2:
            raise RequestError("a refactor needs a pattern and a template, or --recipe NAME")
        return by_structure(words[0], words[1], lang), words[2:] or ["."]
    if not words:
        raise RequestError("a refactor needs a template")
    if not lang:
        raise RequestError("--query needs --lang, because a query is written for the grammar of one language")
    return by_syntax(query, words[0], lang), words[1:] or ["."]


def ranged(ranges: Sequence[str], template: str) -> tuple[Refactoring, Sequence[str]]:
    """Returns the refactoring of places given as ``FILE:LINE:COL-LINE:COL``, and their files. Raises RequestError."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for text in ranges:
        match = RANGE.fullmatch(text)
        if match is None:
            raise RequestError(f"--range expects FILE:LINE:COL-LINE:COL, not {text!r}")
        document = files.read(Path(match["file"]))
        start, end = (files.offset_at(document, match[side]) for side in ("start", "end"))
        if end < start:
            raise RequestError(f"--range {text} ends before it starts")
        spans.setdefault(str(document.path), []).append((start, end))
    return by_place(spans, template), list(spans)


def propose(
    refactoring: Refactoring,
    paths: Sequence[str],
    options: DecodeOptions,
    engine: Callable[[], FillEngine],
    *,
    forced: str,
    min_confidence: float,
) -> tuple[Plan, Callable[[Plan], Plan]]:
    """Finds the places and fills their holes; returns the plan, and what asks the user about its places.

    ``engine`` is called only where there are holes.
    """
    sources, unread = gather(paths, refactoring.languages, forced=forced)
    with output.counting("finding places", None) as found_one:
        found, left_out = places(refactoring, sources, found_one)
    if any(rewrite.holes for _, rewrites in found for rewrite in rewrites):
        engine()  # loaded before the progress bar is shown

    def answer(request: InfillRequest) -> InfillResult:
        return engine().fill(request)

    fills = [FileFill(source, rewrites, options, min_confidence=min_confidence) for source, rewrites in found]
    with output.counting("filling", sum(len(rewrites) for _, rewrites in found)) as advance:
        fill_files(fills, answer, advance)
    plan = Plan(refactoring.title, tuple(fill.edits() for fill in fills), (*unread, *left_out))
    return plan, partial(_ask, fills={fill.source.path: fill for fill in fills}, answer=answer)


def _ask(plan: Plan, fills: Mapping[str, FileFill], answer: Callable[[InfillRequest], InfillResult]) -> Plan:
    """Shows and asks about place after place; returns the accepted edits. Raises RequestError at end of input."""
    kept: list[FileEdits] = []
    number, key = 0, ""
    for file in plan.ready.files:
        document = _unchanged(file)
        accepted: list[PlannedEdit] = []
        for edit in file.edits:
            number += not edit.support
            if not edit.support and key not in ("a", "q"):
                counter = f"{number}/{plan.num_ready}"
                key, edit = _decided(edit, document, file, fills[file.path], answer, counter)
            if edit.support or key in ("y", "a"):
                accepted.append(edit)
        kept.append(msgspec.structs.replace(file, edits=tuple(accepted)))
    return msgspec.structs.replace(plan, files=tuple(kept)).ready


def _decided(
    edit: PlannedEdit,
    document: FileText,
    file: FileEdits,
    fill: FileFill,
    answer: Callable[[InfillRequest], InfillResult],
    counter: str,
) -> tuple[str, PlannedEdit]:
    """Asks about one place, which the question names by a counter."""

    def describe(edit: PlannedEdit) -> str:
        sure = f", confidence {edit.confidence:.2g}" if edit.confidence is not None else ""
        return f"{counter} {edit.label}{sure}"

    def edited(edit: PlannedEdit) -> PlannedEdit:
        changed = msgspec.structs.replace(edit, new_text=terminal.edited(document, edit.new_text), confidence=None)
        if fill.is_sound(changed):
            return changed
        output.say("with this text the file has a syntax error; the place keeps its text")
        return edit

    def show(edit: PlannedEdit) -> None:
        _show(document, msgspec.structs.replace(file, edits=(edit,)))

    others: Iterator[PlannedEdit] | None = None

    def other(edit: PlannedEdit) -> PlannedEdit | None:
        nonlocal others
        others = others or fill.others(edit, answer)
        return next(others, None)

    return terminal.decided(edit, show, describe, edited, other)


def _unchanged(file: FileEdits) -> FileText:
    """Returns the text of a file that the edits are for; raises RequestError where it has changed since."""
    document = files.read(Path(file.path))
    file.check(document.text.encode())
    return document


def _show(document: FileText, file: FileEdits) -> None:
    terminal.print_diff(document, file.rewritten(document.text.encode()).decode())


def _report(plan: Plan) -> None:
    """Reports on stderr the places that are not in the diff: failed and unsure ones, and those left out."""
    left = [(file.path, edit) for file in plan.files for edit in file.edits if edit.status != "ready"]
    for path, edit in left:
        output.say(f"{path}: {edit.label}: {edit.message}; not changed")
    for line in plan.left_out:
        output.say(line)
    if any(edit.status == "unsure" and edit.confidence is not None for _, edit in left):
        output.say("--min-confidence 0 shows these unsure fills, too")


def conclude(plan: Plan, ask: Callable[[Plan], Plan], *, interactive: bool, apply: bool, json_output: bool) -> None:
    """Shows the plan and writes the confirmed edits. Raises typer.Exit where no place matches or has no valid fill."""
    nothing = not any(file.edits for file in plan.files)
    confirmed = plan.ready
    if interactive and not nothing:
        confirmed = ask(plan)
    elif not json_output:
        for file in confirmed.files:
            _show(_unchanged(file), file)
    _report(plan)
    if json_output:
        if apply:
            write(plan)
        output.print_json({"plan": plan, "applied": apply})
    elif not nothing and (apply or interactive or confirm(plan)):
        write(confirmed)
        output.say(f"changed {extent(confirmed)}")
    if nothing and not plan.left_out:
        output.say("no place matches")
    if nothing or plan.num_failed:
        raise typer.Exit(FAILED)


def confirm(plan: Plan) -> bool:
    """Asks for confirmation on a terminal, and says elsewhere how the changes can be written."""
    known = [edit.confidence for file in plan.files for edit in file.ready if edit.confidence is not None]
    sure = f"; the least certain fill has a confidence of {min(known):.2g}" if known else ""
    if plan.num_ready and terminal.is_answered():
        return typer.confirm(f"Change {extent(plan)}{sure}?")
    output.say(f"{extent(plan)} can be changed{sure}; --apply or --interactive writes the changes")
    return False


def extent(plan: Plan) -> str:
    """Returns the number of places and files that can be changed, in words."""
    num_places, num_files = plan.num_ready, len(plan.ready.files)
    return f"{num_places} place{'s' * (num_places != 1)} in {num_files} file{'s' * (num_files != 1)}"


def print_recipes(*, json_output: bool) -> None:
    """Prints the recipes with their languages and settings."""
    if json_output:
        output.print_json({"recipes": [described(name) for name in recipes()]})
        return
    from rich.table import Table

    table = Table("NAME", "WHAT IT DOES", "LANGUAGES", "SETTINGS (--set)", box=None, pad_edge=False)
    for name, recipe in recipes().items():
        table.add_row(name, recipe.summary, " ".join(sorted(recipe.languages)), " ".join(recipe.settings))
    output.print_table(table)
