"""Reads commits whose first change is known: a file as it was, its changes, and which of them follow the first."""

import gzip
from itertools import islice
from pathlib import Path, PurePath
from typing import Literal

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.text import diff
from lacuna_model.text.lines import lines_of
from training.edits import EditExample
from training.rows.samples import edits

Kind = Literal["repeat", "near"]
# Cases of a corpus, where no other number is asked for.
HELD_OUT = 200


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


def of_example(one: EditExample, name: str) -> EditCase:
    """A change of a package, and what follows it within the lines below, as a case; nothing may follow."""
    above, was, below = (lines_of(text, keepends=True) for text in (one.prefix, one.old, one.standing))
    first, start = len(above), len(above) + len(was)
    changes = [LineEdit(first, start, _bare(lines_of(one.new, keepends=True)))]
    for hunk in diff.hunks(below, after := lines_of(one.updated, keepends=True)):
        new = _bare(after[hunk.new_start : hunk.new_end])
        changes.append(LineEdit(start + hunk.start, start + hunk.end, new))
    text = one.prefix + one.old + one.standing + one.suffix
    path = PurePath(one.path).name
    return EditCase(f"{one.package}:{name}", "near", one.language, path, text, changes, 0, [*range(1, len(changes))])


def _bare(lines: list[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


def load_edit_cases(path: Path, limit: int = 0, kind: str = "") -> list[EditCase]:
    """Reads a ``.jsonl.gz`` file of cases, at most ``limit`` (0: all) of one kind ("": any).

    Of a corpus (a folder) the cases are its held-out edits, which are all *near*, of the packages in turns. Raises
    RequestError if it is no such file, and CorpusError if the corpus has no edits.
    """
    if path.is_dir():
        drawn = islice(edits(path, "held_out", seed=0), limit or HELD_OUT)
        return [of_example(one, str(number)) for number, one in enumerate(drawn)]
    try:
        with gzip.open(path) as file:
            cases = [msgspec.json.decode(line, type=EditCase) for line in file if line.strip()]
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        raise RequestError(f"{path} has no edits of commits: {error}") from error
    return [case for case in cases if kind in ("", case.kind)][: limit or len(cases)]
