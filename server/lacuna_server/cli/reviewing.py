"""Asks about changes one by one: the gaps of ``lacuna fill --interactive``, the places of a plan of edits."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from lacuna_model.commands import output
from lacuna_model.core import regions
from lacuna_model.core.params import MAX_CANDIDATES, FillGaps, InfillRequest, InfillResult
from lacuna_server import files
from lacuna_server.cli import terminal
from lacuna_server.files import FileText
from lacuna_server.refactor.fill import FileFill, finished
from lacuna_server.refactor.plan import FileEdits, Plan, PlannedEdit


def unchanged(file: FileEdits) -> FileText:
    """Returns the text of a file that the edits are for; raises RequestError where it has changed since."""
    document = files.read(Path(file.path))
    file.check(document.text.encode())
    return document


def show(plan: Plan) -> None:
    """Prints the unified diff of all files."""
    for file in plan.ready.files:
        document = unchanged(file)
        terminal.print_diff(document, file.rewritten(document.text.encode()).decode())


def show_place(document: FileText, file: FileEdits, edit: PlannedEdit) -> None:
    """Prints the diff of one place."""
    terminal.print_diff(
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
            document = unchanged(file)
            accepted: list[PlannedEdit] = []
            for edit in file.edits:
                if edit.support:
                    accepted.append(edit)
                    continue
                number += 1
                if key not in ("a", "q"):
                    place = _Place(document, file, self._fills[file.path], self._answer, f"{number}/{plan.num_ready}")
                    key, edit = terminal.decided(place, edit)
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
        text = files.adapt_newlines(self._document, terminal.edited(edit.new_text, suffix))
        changed = msgspec.structs.replace(edit, new_text=text, confidence=None)
        if self._fill.is_sound(changed):
            return changed
        output.say("with this text the file has a syntax error; the place keeps its text")
        return edit

    def other(self, edit: PlannedEdit) -> PlannedEdit | None:
        if self._others is None:
            self._others = finished(self._fill.others(edit), self._answer)
        return self._others.pop(0) if self._others else None


Fill = Callable[[InfillRequest], InfillResult]


class Review:
    """The decisions about the gaps of documents, one document after the other; a gap that is not taken stays."""

    def __init__(self) -> None:
        self._key = ""

    @property
    def ended(self) -> bool:
        """Whether the user wants no further gap filled."""
        return self._key == "q"

    def text(self, document: FileText, request: InfillRequest, fills: Sequence[str], fill: Fill) -> str:
        """Asks for each gap of a document; returns its text with the taken fills.

        ``fill`` answers a request for another fill. Raises RequestError if the input ends.
        """
        gaps = Gaps(document, request, fills, fill)
        data = document.text.encode()
        chosen = [*regions.standing(data, request.regions)]
        for index in range(len(chosen)):
            if self._key not in ("a", "q"):
                self._key, gaps.fills[index] = terminal.decided(NumberedGap(gaps, index), gaps.fills[index])
            if self._key in ("y", "a"):
                chosen[index] = gaps.fills[index]
        return request.filled(chosen)


class Gaps:
    """The gaps of a document with their present fills."""

    def __init__(self, document: FileText, request: InfillRequest, fills: Sequence[str], fill: Fill) -> None:
        self.document = document
        self.request = request
        self.fills = list(fills)
        self.fill = fill


class NumberedGap:
    """One gap, which the question names by its number."""

    def __init__(self, gaps: Gaps, index: int) -> None:
        self._gaps = gaps
        self._index = index
        self._seen = {gaps.fills[index]}

    def show(self, fill: str) -> None:
        """Prints the fill, on a terminal with the lines around it."""
        terminal.print_fill(self._gaps.document, [self._gaps.request.regions[self._index]], [fill])

    def describe(self, fill: str) -> str:
        """Returns the number of the gap and the file."""
        return f"{self._index + 1}/{len(self._gaps.fills)} {self._gaps.document.path}"

    def edit(self, fill: str) -> str:
        """Returns the fill as the user leaves it in an editor."""
        document = self._gaps.document
        return files.adapt_newlines(document, terminal.edited(fill, document.path.suffix))

    def other(self, fill: str) -> str | None:
        """Returns a fill that was not shown yet, with the other gaps as they are filled now."""
        gaps, index = self._gaps, self._index
        text, gap = regions.text_for(
            gaps.document.text.encode(),
            gaps.request.regions,
            gaps.fills,
            range(index, index + 1),
            gaps.fills[index + 1 :],
        )
        again = msgspec.structs.replace(
            gaps.request,
            text=text.decode(),
            regions=tuple(gap),
            task=FillGaps(min(len(self._seen) + 1, MAX_CANDIDATES)),
        )
        result = gaps.fill(again)
        if result.status == "no_valid_fill":
            return None
        found = [*result.fills, *(fills[0] for fills in result.alternatives)]
        new = next((text for text in found if text not in self._seen), None)
        if new is not None:
            self._seen.add(new)
        return new
