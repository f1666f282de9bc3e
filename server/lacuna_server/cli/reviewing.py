"""Shows a plan of edits in the terminal: its diff and what was left out of it; asks about each of its places."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from lacuna_model.commands import output
from lacuna_model.core.params import InfillRequest, InfillResult
from lacuna_server import files
from lacuna_server.console import questions, showing
from lacuna_server.files import FileText
from lacuna_server.refactor.fill import FileFill, finished
from lacuna_server.refactor.plan import FileEdits, Plan, PlannedEdit


def show(plan: Plan) -> None:
    """Prints the unified diff of all files."""
    for file in plan.ready.files:
        document = files.read(Path(file.path))
        showing.print_diff(document, file.rewritten(document.text.encode()).decode())


def show_place(document: FileText, file: FileEdits, edit: PlannedEdit) -> None:
    """Prints the diff of one place."""
    showing.print_diff(
        document, msgspec.structs.replace(file, edits=(edit,)).rewritten(document.text.encode()).decode()
    )


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


class Questions:
    """Asks about the places of a plan. ``fills`` has the places by path, and ``answer`` answers requests for fills."""

    def __init__(self, fills: Mapping[str, FileFill], answer: Callable[[InfillRequest], InfillResult]) -> None:
        self._fills = fills
        self._answer = answer

    def ask(self, plan: Plan) -> Plan:
        """Shows and asks about place after place; returns the accepted edits. Raises RequestError at end of input."""
        kept: list[FileEdits] = []
        number, key = 0, ""
        for file in plan.ready.files:
            document = files.read(Path(file.path))
            accepted: list[PlannedEdit] = []
            for edit in file.edits:
                if edit.support:
                    accepted.append(edit)
                    continue
                number += 1
                if key not in ("a", "q"):
                    place = _Place(document, file, self._fills[file.path], self._answer, f"{number}/{plan.num_ready}")
                    key, edit = questions.decided(place, edit)
                if key in ("y", "a"):
                    accepted.append(edit)
            kept.append(msgspec.structs.replace(file, edits=tuple(accepted)))
        return msgspec.structs.replace(plan, files=tuple(kept)).ready


class _Place:
    """One place, which the question names by a counter."""

    def __init__(
        self,
        document: FileText,
        file: FileEdits,
        fill: FileFill,
        answer: Callable[[InfillRequest], InfillResult],
        counter: str,
    ) -> None:
        self._document = document
        self._file = file
        self._fill = fill
        self._answer = answer
        self._counter = counter
        self._others: list[PlannedEdit] | None = None

    def show(self, edit: PlannedEdit) -> None:
        show_place(self._document, self._file, edit)

    def describe(self, edit: PlannedEdit) -> str:
        sure = f", confidence {edit.confidence:.2g}" if edit.confidence is not None else ""
        return f"{self._counter} {edit.label}{sure}"

    def edit(self, edit: PlannedEdit) -> PlannedEdit:
        """Returns the edit with the text that the user makes of it in an editor, as long as the file stays valid."""
        suffix = self._document.path.suffix
        text = files.adapt_newlines(self._document, questions.edited(edit.new_text, suffix))
        changed = msgspec.structs.replace(edit, new_text=text, confidence=None)
        if self._fill.is_sound(changed):
            return changed
        output.say("with this text the file has a syntax error; the place keeps its text")
        return edit

    def other(self, edit: PlannedEdit) -> PlannedEdit | None:
        if self._others is None:
            self._others = finished(self._fill.others(edit), self._answer)
        return self._others.pop(0) if self._others else None
