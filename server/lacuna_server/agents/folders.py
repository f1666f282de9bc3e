"""The folders that an agent may touch, places in their files, and the refusals of others."""

import hashlib
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from lacuna_model.core.errors import RequestError
from lacuna_model.files.scanning import admits, quotable
from lacuna_model.languages.registry import language_for
from lacuna_model.syntax.document import COMPILES
from lacuna_model.syntax.faults import Fault, Splice, all_faults, carried_over
from lacuna_model.text import diff
from lacuna_model.text.lines import LINE_END
from lacuna_server import files
from lacuna_server.files import FileText
from lacuna_server.refactor.places.source import Source

MAX_NAMED = 8


def added_errors(document: FileText, start: int, end: int, text: str) -> list[str]:
    """One line for each of the first errors that ``text`` in place of the bytes ``start``..``end`` adds.

    Raises RequestError for a file in an unknown language.
    """
    language = language_for(str(document.path))
    if language is None:
        raise RequestError(f"{document.path}: no language is known for this name, so its syntax is not checked")
    old = Source(str(document.path), document.text, language)
    data = old.data
    new = Source(old.path, (data[:start] + text.encode() + data[end:]).decode(), language)
    known = carried_over(all_faults(old.tree, old.data, old.language), [Splice(start, end, len(text.encode()))])
    added = sorted(all_faults(new.tree, new.data, new.language) - known, key=lambda fault: fault.start)
    if added:
        return [_line(new, fault) for fault in added[:MAX_NAMED]]
    compiles = COMPILES.get(language.name)
    if compiles is not None and compiles(old.data) and not compiles(new.data):
        return [f"the {language.name} compiler accepts the file, and does not accept it with this text"]
    return []


def _line(source: Source, fault: Fault) -> str:
    line, column = source.position(fault.start)
    shown = source.slice(fault.start, fault.end).strip().partition("\n")[0][:60]
    if fault.kind.startswith("MISSING "):
        return f"line {line}, column {column}: {fault.kind.removeprefix('MISSING ')!r} is missing"
    why = "is not indented as the lines around it" if fault.kind == "INDENT" else "is not valid here"
    return f"line {line}, column {column}: {shown!r} {why}"


# A longer name is a text that was passed by mistake.
LONGEST_PATH = 1000


class Folders:
    """The folders that the server was started with. Relative paths are those of the first folder."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.roots = [folder.resolve(strict=True) for folder in folders]
        for root in self.roots:
            if not root.is_dir():
                raise RequestError(f"{root} is not a folder")

    def file(self, name: str) -> Path:
        """The file with that name; raises RequestError where it lies outside, is ignored, or is no file."""
        path, root = self._inside(name)
        if not path.is_file():
            raise RequestError(f"{name} is not a file")
        self._check(name, root, path)
        return path

    def read(self, name: str) -> FileText:
        """The content of such a file; raises RequestError also where it holds a credential or is generated."""
        document = files.read(self.file(name))
        if not quotable(document.text):
            raise RequestError(f"{name} is generated or holds a credential; it is neither shown nor written")
        return document

    def places(self, names: Sequence[str]) -> list[str]:
        """Files, folders and globs with those names, all folders without any.

        Raises RequestError for one that lies outside or is ignored. What a glob finds is not checked.
        """
        return [self._place(name) for name in names] or [str(root) for root in self.roots]

    def _place(self, name: str) -> str:
        path, root = self._inside(name)
        if path.exists():
            self._check(name, root, path / "any.py" if path.is_dir() else path)
        return str(path)

    def _check(self, name: str, root: Path, path: Path) -> None:
        if not admits(root, path):
            raise RequestError(f"{name} is ignored by git or may hold a secret; it is neither read nor written")

    def _inside(self, name: str) -> tuple[Path, Path]:
        """The path without links, and the folder that it lies in."""
        if len(name) > LONGEST_PATH or not name.isprintable():
            raise RequestError(f"{_shown(name)} is no path; name a file or folder, do not pass its content")
        path = (self.roots[0] / name).resolve()
        root = next((root for root in self.roots if path.is_relative_to(root)), None)
        if root is None:
            allowed = ", ".join(map(str, self.roots))
            raise RequestError(f"{name} lies outside the folders of this server: {allowed}")
        return path, root


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
            self._check(document, None, version)
            return self._found(document, old_text)
        start, end = files.lines_at(document, lines)
        there = document.text.encode()[:end].decode()
        if not old_text:
            first = len(_lines(there.encode()[:start].decode())) + 1
            self._check(document, range(first, len(_lines(there)) + 1), version)
            return start, end
        self._check(document, None, version)
        if _lines(found := there.encode()[start:].decode()) != _lines(old_text):
            raise RequestError(f"lines {lines} are not old_text; they begin {_shown(_lines(found)[0])}")
        self._known[document.path] = document.text
        return start, end

    def offset(self, document: FileText, position: str, version: str = "") -> int:
        """Returns the byte offset of a position LINE:COL. Raises RequestError as :meth:`lines` does."""
        offset = files.offset_at(document, position)
        before = document.text.encode()[:offset].decode()
        line = len(LINE_END.findall(before)) + 1
        self._check(document, range(line, line + 1), version)
        return offset

    def _check(self, document: FileText, named: range | None, version: str) -> None:
        """Check the version of a call, or without one that the lines ``named`` by their numbers have not moved."""
        now = version_of(document.text)
        if version and version != now:
            raise RequestError(f"{document.path} is not version {version} any more; read it again, it is {now}")
        if version:
            self._known[document.path] = document.text
        moved = _moved(self._known.setdefault(document.path, document.text), document.text)
        if moved and named and named.start < moved.stop and moved.start < named.stop:
            raise RequestError(
                f"{document.path} has changed: from line {moved.start} on, line numbers are others than before; name "
                f"the text of the lines as old_text, or version {now} if the numbers are those of the file as it is"
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
        return files.lines_at(document, f"{starts[0] + 1}:{starts[0] + len(wanted)}")


def _moved(before: str, now: str) -> range:
    """The lines, from 1, whose numbers are not what they were; where there are as many lines, as single ones tell."""
    old, new = _lines(before), _lines(now)
    if len(old) == len(new):
        places = [place for pair in diff.once(old, new) if pair[0] != pair[1] for place in pair]
        return range(min(places) + 1, max(places) + 2) if places else range(0)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    return range(same + 1, max(len(old), len(new)) + 1)


def _lines(text: str) -> list[str]:
    """The lines of a text without their ends."""
    lines = LINE_END.split(text.removeprefix(files.BOM))
    return lines if lines[-1] else lines[:-1]


def _shown(line: str) -> str:
    return repr(line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]}...")
