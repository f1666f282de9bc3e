"""The sources of a workspace: the definitions, imports and chunks of each file."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.languages.registry import language_for
from lacuna_model.snippets.definitions import Definition, definitions
from lacuna_model.snippets.format import plain, words
from lacuna_model.snippets.imports import Import, imports, module_file, module_files, stem

log = logging.getLogger(__name__)

# A chunk ends at the first empty line after the smaller number of rows, and after the larger number at the latest.
CHUNK_ROWS = (12, 24)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows ``first`` to ``last`` - 1 of a file, and their words; ``lines`` are all rows of the file."""

    path: str
    lines: list[str]
    first: int
    last: int
    words: list[str]

    @property
    def text(self) -> str:
        """The rows, without empty ones at both ends."""
        rows = (line.rstrip() for line in self.lines[self.first : self.last])
        return "\n".join(rows).strip("\n") + "\n"


@dataclass(frozen=True, slots=True)
class SnippetFile:
    """One file: its rows, definitions, imports and chunks."""

    path: str
    language: str
    lines: list[str]
    definitions: tuple[Definition, ...]
    imports: dict[str, Import]
    chunks: tuple[Chunk, ...]


@dataclass(slots=True)
class Sources:
    """All files of a workspace that were read so far.

    One thread puts and drops files, and others may look names up meanwhile; a file is missing only for a moment while
    it is replaced.
    """

    files: dict[str, SnippetFile] = field(default_factory=dict)
    by_name: dict[str, set[str]] = field(default_factory=dict)
    by_stem: dict[str, set[str]] = field(default_factory=dict)
    by_folder: dict[str, set[str]] = field(default_factory=dict)

    def put(self, path: str, text: str) -> None:
        """Add or replace a file; ``path`` is relative to the workspace."""
        source = read(path, text)  # this takes a while, in which others still find the old one
        self.drop(path)
        self.files[path] = source
        for table, key in self._entries(source):
            table.setdefault(key, set()).add(path)

    def drop(self, path: str) -> None:
        """Remove a file; unknown files are ignored."""
        source = self.files.pop(path, None)
        for table, key in self._entries(source) if source is not None else ():
            table[key].discard(path)
            if not table[key]:
                del table[key]

    def _entries(self, source: SnippetFile) -> Iterator[tuple[dict[str, set[str]], str]]:
        """Where a file is listed: each table with its key."""
        yield from ((self.by_name, name) for name in {one.name for one in source.definitions})
        yield self.by_stem, stem(source.path).rpartition("/")[2]
        yield self.by_folder, source.path.rpartition("/")[0].rpartition("/")[2]

    def places(self, name: str) -> list[str]:
        """The paths of the files that define a name."""
        return sorted(tuple(self.by_name.get(name, ())))

    def file(self, wanted: Import, path: str, language: str) -> SnippetFile | None:
        """The file that an import in ``path`` refers to; None where it is outside the workspace."""
        return self.files.get(module_file(wanted, path, language, self.by_stem) or "")

    def module(self, wanted: Import, path: str, language: str) -> list[SnippetFile]:
        """The files that are the module an import in ``path`` names; none where it names what one has."""
        paths = module_files(wanted, path, language, self.by_stem, self.by_folder)
        return list(filter(None, map(self.files.get, paths)))

    def defining(self, path: str, name: str) -> Iterator[tuple[SnippetFile, Definition]]:
        """The definitions of a name in one file."""
        if (source := self.files.get(path)) is not None:
            yield from ((source, one) for one in source.definitions if one.name == name)


def read(path: str, text: str) -> SnippetFile:
    """The source with this path and text."""
    text = plain(text)
    language = language_for(path)
    lines = text.split("\n")
    return SnippetFile(
        path,
        language.name if language else "",
        lines,
        _definitions(path, text, language) if language else (),
        imports(text, language.name) if language else {},
        tuple(Chunk(path, lines, *rows, words("\n".join(lines[slice(*rows)]))) for rows in chunk_rows(lines)),
    )


def _definitions(path: str, text: str, language: Language) -> tuple[Definition, ...]:
    """The definitions of a file; none, with a warning in the log, where the parser does not finish."""
    try:
        return definitions(text, language)
    except UnparsableError as error:
        _say(path, str(error))
        return ()


@lru_cache(maxsize=1024)
def _say(path: str, reason: str) -> None:
    log.warning("%s: %s; its definitions are left out", path, reason)


def chunk_rows(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Cut a text into chunks, at empty lines where possible; blank chunks are left out."""
    least, most = CHUNK_ROWS
    first = 0
    for row in range(1, len(lines) + 1):
        at_end = row == len(lines)
        if at_end or row - first >= most or (row - first >= least and not lines[row].strip()):
            if any(line.strip() for line in lines[first:row]):
                yield first, row
            first = row
