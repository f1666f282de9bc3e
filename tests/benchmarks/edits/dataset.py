"""Reads commits whose first change is known: a file as it was, its changes, and which of them follow the first."""

import gzip
from pathlib import Path
from typing import Literal

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.text.lines import lines_of

Kind = Literal["repeat", "near"]


class LineEdit(msgspec.Struct, frozen=True):
    """The lines ``start`` (counted from 0) up to, but not including, ``end`` become ``new``."""

    start: int
    end: int
    new: list[str]


class EditCase(msgspec.Struct, frozen=True):
    """One file of a commit.

    ``edits`` are its changes, in the lines of ``before``, in order. ``first`` is the index of the change that is made
    first, ``expected`` are those that follow from it.
    """

    id: str
    kind: Kind
    language: str
    path: str
    before: str
    edits: list[LineEdit]
    first: int
    expected: list[int]

    @property
    def lines(self) -> list[str]:
        """The lines of the text before the commit, with their endings."""
        return lines_of(self.before, keepends=True)

    @property
    def after_first(self) -> list[str]:
        """The lines once the first change is made."""
        return replaced(self.lines, self.edits[self.first])

    def shifted(self, index: int) -> LineEdit:
        """Returns the change of that index in the lines of ``after_first``."""
        edit, first = self.edits[index], self.edits[self.first]
        by = len(first.new) - (first.end - first.start) if edit.start >= first.end and index != self.first else 0
        return LineEdit(edit.start + by, edit.end + by, edit.new)


def replaced(lines: list[str], edit: LineEdit) -> list[str]:
    """Returns the lines after an edit; a text that the edit would join to the next line gets a line ending."""
    ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    new = [line if line.endswith(("\n", "\r")) else line + ending for line in edit.new]
    return [*lines[: edit.start], *new, *lines[edit.end :]]


def load_edit_cases(path: Path, limit: int = 0, kind: str = "") -> list[EditCase]:
    """Reads a ``.jsonl.gz`` file of cases, at most ``limit`` (0: all) of one kind ("": any).

    Raises RequestError if it is no such file.
    """
    try:
        with gzip.open(path) as file:
            cases = [msgspec.json.decode(line, type=EditCase) for line in file if line.strip()]
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        raise RequestError(f"{path} has no edits of commits: {error}") from error
    return [case for case in cases if kind in ("", case.kind)][: limit or len(cases)]
