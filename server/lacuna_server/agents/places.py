"""Where an agent points in a file: line numbers belong to a version of it, and those that have moved are refused."""

import hashlib
from itertools import takewhile
from pathlib import Path

from lacuna_model.core.errors import RequestError
from lacuna_model.text.lines import LINE_END
from lacuna_server import files
from lacuna_server.console.lines import lines_at
from lacuna_server.files import FileText

VERSION_DIGITS = 12
MAX_SHOWN = 60


def version_of(text: str) -> str:
    """The name of a version of a file: the same for the same text."""
    return hashlib.sha256(text.encode()).hexdigest()[:VERSION_DIGITS]


class Places:
    """The versions of files that line numbers may belong to: the first one read, or the last one that a call named."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def lines(self, document: FileText, lines: str, version: str = "", old_text: str = "") -> tuple[int, int]:
        """Returns the byte offsets of whole lines: ``lines`` A:B, or without them those of ``old_text``.

        Raises RequestError where the lines have moved and neither the version nor their text is named, where one that
        is named is not that of the file, and for lines or a text that the file does not have.
        """
        if not lines:
            if not _lines(old_text):
                raise RequestError("name lines A:B, or their text as old_text")
            self._check(document, 0, version)
            return self._found(document, old_text)
        start, end = lines_at(document, lines)
        there = document.text.encode()[:end].decode()
        if not old_text:
            self._check(document, len(_lines(there)), version)
            return start, end
        self._check(document, 0, version)
        if _lines(found := there.encode()[start:].decode()) != _lines(old_text):
            raise RequestError(f"lines {lines} are not old_text; they begin {_first_line(found)}")
        self._known[document.path] = document.text
        return start, end

    def offset(self, document: FileText, position: str, version: str = "") -> int:
        """Returns the byte offset of a position LINE:COL. Raises RequestError as :meth:`lines` does."""
        offset = files.offset_at(document, position)
        before = document.text.encode()[:offset].decode()
        self._check(document, len(LINE_END.findall(before)) + 1, version)
        return offset

    def _check(self, document: FileText, last: int, version: str) -> None:
        """Check the version of a call, or without one that the lines up to ``last`` have not moved."""
        now = version_of(document.text)
        if version and version != now:
            raise RequestError(f"{document.path} is not version {version} any more; read it again, it is {now}")
        if version:
            self._known[document.path] = document.text
        moved = _first_moved(self._known.setdefault(document.path, document.text), document.text)
        if moved and last >= moved:
            raise RequestError(
                f"{document.path} has changed: from line {moved} on, line numbers are others than before; name the "
                f"text of the lines as old_text, or version {now} if the numbers are those of the file as it is"
            )

    def _found(self, document: FileText, old_text: str) -> tuple[int, int]:
        """Returns the only whole lines with a text."""
        whole, wanted = _lines(document.text), _lines(old_text)
        last = len(whole) - len(wanted)
        starts = [at for at in range(last + 1) if whole[at] == wanted[0] and whole[at : at + len(wanted)] == wanted]
        if len(starts) != 1:
            found = f"{len(starts)} places" if starts else "no lines"
            raise RequestError(f"{document.path} has {found} with this old_text; it is whole lines of one place")
        self._known[document.path] = document.text
        return lines_at(document, f"{starts[0] + 1}:{starts[0] + len(wanted)}")


def _first_moved(before: str, now: str) -> int:
    """The first line, from 1, whose number is not what it was; 0 where all lines are where they were."""
    old, new = _lines(before), _lines(now)
    if len(old) == len(new):
        return 0
    return 1 + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _lines(text: str) -> list[str]:
    """The lines of a text without their ends."""
    lines = LINE_END.split(text.removeprefix(files.BOM))
    return lines if lines[-1] else lines[:-1]


def _first_line(text: str) -> str:
    line = _lines(text)[0]
    return repr(line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]}...")
