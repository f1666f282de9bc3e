"""Asks about changes one by one: the gaps of ``lacuna fill --interactive``, the places of a plan of edits."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from lacuna_model.commands import output
from lacuna_model.core import regions
from lacuna_model.core.params import MAX_CANDIDATES, FillGaps, InfillRequest, InfillResult
from lacuna_server import files
from lacuna_server.cli import terminal
from lacuna_server.cli.terminal import Subject
from lacuna_server.files import FileText
from lacuna_server.refactor.fill import FileFill, finished
from lacuna_server.refactor.plan import FileEdits, Plan, PlannedEdit

Fill = Callable[[InfillRequest], InfillResult]


def unchanged(file: FileEdits) -> FileText:
    """Returns the text of a file that the edits are for; raises RequestError where it has changed since."""
    document = files.read(Path(file.path))
    file.check(document.text.encode())
    return document


def show(plan: Plan) -> None:
    """Prints the unified diff of all files."""
    for file in plan.ready.files:
        _show(unchanged(file), file)


def _show(document: FileText, file: FileEdits) -> None:
    terminal.print_diff(document, file.rewritten(document.text.encode()).decode())


def report(plan: Plan) -> None:
    """Reports on stderr the places that are not in the diff: failed and unsure ones, and those left out."""
    for file in plan.files:
        for edit in file.edits:
            if edit.status != "ready":
                output.say(f"{file.path}: {edit.label}: {edit.message}; not changed")
    for line in plan.left_out:
        output.say(line)
    if plan.num_unsure:
        output.say("--min-confidence 0 shows these unsure fills, too")


def ask(plan: Plan, fills: Mapping[str, FileFill], answer: Fill) -> Plan:
    """Shows and asks about place after place; returns the accepted edits. Raises RequestError at end of input.

    ``fills`` has the places by path, and ``answer`` answers requests for fills.
    """
    kept: list[FileEdits] = []
    number, key = 0, ""
    for file in plan.ready.files:
        document = unchanged(file)
        accepted: list[PlannedEdit] = []
        for edit in file.edits:
            number += not edit.support
            if not edit.support and key not in ("a", "q"):
                place = _place(document, file, fills[file.path], answer, f"{number}/{plan.num_ready}")
                key, edit = terminal.decided(place, edit)
            if edit.support or key in ("y", "a"):
                accepted.append(edit)
        kept.append(msgspec.structs.replace(file, edits=tuple(accepted)))
    return msgspec.structs.replace(plan, files=tuple(kept)).ready


def _place(document: FileText, file: FileEdits, fill: FileFill, answer: Fill, counter: str) -> Subject[PlannedEdit]:
    """One place, which the question names by a counter."""

    def describe(edit: PlannedEdit) -> str:
        sure = f", confidence {edit.confidence:.2g}" if edit.confidence is not None else ""
        return f"{counter} {edit.label}{sure}"

    def edited(edit: PlannedEdit) -> PlannedEdit:
        text = files.adapt_newlines(document, terminal.edited(edit.new_text, document.path.suffix))
        changed = msgspec.structs.replace(edit, new_text=text, confidence=None)
        if fill.is_sound(changed):
            return changed
        output.say("with this text the file has a syntax error; the place keeps its text")
        return edit

    others: list[PlannedEdit] | None = None

    def other(edit: PlannedEdit) -> PlannedEdit | None:
        nonlocal others
        if others is None:
            others = finished(fill.others(edit), answer)
        return others.pop(0) if others else None

    return Subject(lambda edit: _show(document, msgspec.structs.replace(file, edits=(edit,))), describe, edited, other)


def taken(document: FileText, request: InfillRequest, fills: Sequence[str], fill: Fill, key: str) -> tuple[str, str]:
    """Asks for each gap of a document; returns its text with the taken fills, and the last key.

    ``key`` is the last key before; ``fill`` answers a request for another fill. Raises RequestError if the input ends.
    """
    shown = list(fills)
    chosen = [*regions.standing(document.text.encode(), request.regions)]
    for index in range(len(chosen)):
        if key not in ("a", "q"):
            key, shown[index] = terminal.decided(_gap(document, request, shown, index, fill), shown[index])
        if key in ("y", "a"):
            chosen[index] = shown[index]
    return request.filled(chosen), key


def _gap(document: FileText, request: InfillRequest, shown: list[str], index: int, fill: Fill) -> Subject[str]:
    """One gap, which the question names by its number; ``shown`` are the present fills of all gaps."""
    seen = {shown[index]}

    def edited(text: str) -> str:
        return files.adapt_newlines(document, terminal.edited(text, document.path.suffix))

    def other(text: str) -> str | None:
        """Returns a fill that was not shown yet, with the other gaps as they are filled now."""
        data, own = document.text.encode(), range(index, index + 1)
        around, gap = regions.text_for(data, request.regions, shown, own, shown[index + 1 :])
        task = FillGaps(min(len(seen) + 1, MAX_CANDIDATES))
        again = msgspec.structs.replace(request, text=around.decode(), regions=tuple(gap), task=task)
        result = fill(again)
        if result.status == "no_valid_fill":
            return None
        found = [*result.fills, *(fills[0] for fills in result.alternatives)]
        new = next((text for text in found if text not in seen), None)
        seen.update([new] if new is not None else [])
        return new

    return Subject(
        lambda text: terminal.print_fill(document, [request.regions[index]], [text]),
        lambda text: f"{index + 1}/{len(shown)} {document.path}",
        edited,
        other,
    )
