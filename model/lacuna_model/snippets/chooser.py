"""Chooses the snippets that the model reads besides the open file."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import msgspec

from lacuna_model.core.params import Diagnostic, Snippet
from lacuna_model.files.scanning import WorkspaceSettings, is_secret
from lacuna_model.languages.registry import language_for
from lacuna_model.snippets.defined import Definitions
from lacuna_model.snippets.definitions import ROWS_ABOVE, ROWS_BELOW
from lacuna_model.snippets.format import Splitter, TokenCounts, diagnostics_snippet, plain, words
from lacuna_model.snippets.imports import Import
from lacuna_model.snippets.index import WorkspaceIndex
from lacuna_model.snippets.packages.index import PackageIndex
from lacuna_model.snippets.selection import RecentChunks, Selection, select
from lacuna_model.snippets.signatures import SHARE, Signatures
from lacuna_model.snippets.sources import SnippetFile

# Rows around the cursor whose words are the query for similar code, and how many similar chunks are considered.
_QUERY_ABOVE = 12
_QUERY_BELOW = 4
_NUM_SIMILAR = 8
_SIMILAR_SCORE = 0.9
_OPEN_BONUS = 1.2
# Diagnostics change often and come last; they have a share of the budget of their own: one part in so many.
_DIAGNOSTICS_SHARE = 8
_MAX_DOCUMENTS = 32
# Bytes that are read of a document at its beginning, and on each side of the cursor.
_FAR = 1 << 15


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What was chosen for a document: snippets, and signatures with the files as they were."""

    snippets: Selection = field(default_factory=Selection)
    signed: Selection = field(default_factory=Selection)
    files: Mapping[str, SnippetFile | None] = field(default_factory=dict)


class SnippetChooser:
    """Chooses snippets for the documents of one workspace.

    The workspace is read in the background, unless ``background`` is false and :meth:`refresh` is called. Paths are
    absolute or relative to the workspace. Files that the workspace's rules leave out are never quoted, open or not.
    """

    def __init__(self, root: Path, settings: WorkspaceSettings | None = None, *, background: bool = True) -> None:
        settings = settings or WorkspaceSettings()
        self.index = WorkspaceIndex(root, settings)
        self.packages = PackageIndex(self.index.root) if settings.enabled else None
        self._recent = RecentChunks()
        self._selections: OrderedDict[str, _Chosen] = OrderedDict()
        self._counts = TokenCounts()
        if background:
            self.start()

    def start(self) -> None:
        """Read the workspace, and what it imports of packages, in the background."""
        self.index.start()
        if self.packages is not None:
            self.packages.start()

    def close(self) -> None:
        """Stop the background work."""
        self.index.stop()
        if self.packages is not None:
            self.packages.stop()

    def refresh(self) -> None:
        """Read the workspace now; for choosers without background work."""
        self.index.refresh()

    def update(self, path: str, text: str) -> None:
        """Take in a document that is open in the editor with this text."""
        name = self.index.name(path)
        if not self.index.is_open(name) and self.index.admits(name):
            self._recent.note(name, text, 0, "open in the editor")
        self.index.open(name, text)

    def edited(self, path: str, text: str, offset: int) -> None:
        """Take in the new text of an open document that was edited at ``offset`` (bytes)."""
        name = self.index.name(path)
        if self.index.admits(name):
            self._recent.note(name, text, offset, "edited a short while ago")
        self.index.open(name, text)

    def remove(self, path: str) -> None:
        """Forget the open text of a document that was closed."""
        name = self.index.name(path)
        self.index.close(name)
        self._selections.pop(name, None)

    def changed(self, path: str) -> None:
        """Read a file that has changed on disk; without this call, the change is noticed some minutes later."""
        self.index.changed(self.index.name(path))

    def choose(
        self,
        text: str,
        at: int,
        path: str,
        language: str = "",
        *,
        diagnostics: Sequence[Diagnostic] = (),
        signatures: Sequence[Snippet] = (),
        tokenizer: Splitter,
        budget: int,
    ) -> tuple[Snippet, ...]:
        """The snippets for a cursor at ``at`` (bytes) of a document, in the order in which the model reads them.

        Together they take at most ``budget`` tokens. Only the files indexed so far are considered. ``signatures`` are
        what the editor's language servers say of names at the cursor, and come first among those of packages. The same
        snippets are returned in the same order until others are clearly better.
        """
        name = self.index.name(path)
        if is_secret(name):
            return ()
        self.index.touch()
        known = language_for(name, language)
        language = known.name if known else ""
        encoded = text.encode()
        lines, row = _rows(encoded, at)
        head = encoded[encoded.rfind(b"\n", 0, at) + 1 : at].decode()

        count = self._counts.by(tokenizer)
        reported = diagnostics_snippet(
            diagnostics, name, language, row, lambda one: count(one) <= budget // _DIAGNOSTICS_SHARE
        )
        around = "\n".join(lines[max(0, row - ROWS_ABOVE) : row + ROWS_BELOW + 1])
        budget -= budget // _DIAGNOSTICS_SHARE
        is_current = self._current(name)
        old, signed = self._still_there(name, is_current)
        definitions = Definitions(self.index.sources, lines, row, name, language)
        found = self._candidates(definitions, lines, row, name, is_current)
        own = self._signatures(definitions.imports, head, lines, row, name, language)
        signed = select(signed, (*signatures, *own), row, around, count, budget // SHARE)
        selection = select(old, found, row, around, count, budget - sum(map(count, signed.snippets)))
        self._remember(name, selection, signed)
        chosen = (*selection.snippets, *signed.snippets, *([reported] if reported else ()))
        return tuple(msgspec.structs.replace(one, tokens=count(one)) for one in chosen)

    def why_none(self, path: str) -> str:
        """The reason why no snippet was chosen for a document."""
        name = self.index.name(path)
        if is_secret(name):
            return f"{name} may hold secrets, so nothing is read with it"
        if not (others := self.index.sources.files.keys() - {name}):
            return f"{self.index.root} has no other source file that may be read"
        return (
            f"the other source files in {self.index.root} ({len(others)}) have no definition of a name used there and "
            "no similar code that fits in the budget"
        )

    def _candidates(
        self, definitions: Definitions, lines: list[str], row: int, path: str, is_current: Callable[[Snippet], bool]
    ) -> Iterator[Snippet]:
        query = words("\n".join(lines[max(0, row - _QUERY_ABOVE) : row + _QUERY_BELOW + 1]))
        yield from definitions.candidates()
        yield from filter(is_current, self._recent.candidates(path, set(query), self.index.sources.files))
        yield from filter(is_current, self._similar(lines, row, path, query))

    def _similar(self, lines: list[str], row: int, path: str, query: list[str]) -> Iterator[Snippet]:
        """Similar code, without chunks of the document itself that the model reads anyway."""
        for chunk, score in self.index.similar.nearest(query, _NUM_SIMILAR):
            source = self.index.sources.files.get(chunk.path)
            if source is None or (chunk.path == path and abs(chunk.first - row) < ROWS_ABOVE + ROWS_BELOW):
                continue
            there = set(chunk.words)
            shared = [f"`{word}`" for word in dict.fromkeys(reversed(query)) if word in there and len(word) > 2]
            reason = f"similar to the code around line {row + 1}: {', '.join(shared[:3])}"
            bonus = _OPEN_BONUS if self.index.is_open(chunk.path) else 1.0
            yield Snippet(chunk.path, chunk.text, reason, min(1.0, score * _SIMILAR_SCORE * bonus))

    def _signatures(
        self, imported: Mapping[str, Import], head: str, lines: list[str], row: int, path: str, language: str
    ) -> Iterator[Snippet]:
        """The signatures of the names at a cursor behind ``head``."""
        if self.packages is None or language not in self.packages.languages or not self.index.admits(path):
            return
        found = Signatures(self.packages, self.index.sources, imported, lines, row, head, path, language)
        found.want()
        yield from found.candidates()

    def _current(self, name: str) -> Callable[[Snippet], bool]:
        """Tells of a snippet whether its file has its lines. The document with this name changes as it is typed in."""
        rows = cache(lambda path: frozenset(map(str.strip, self.index.rows(path))))

        def is_current(one: Snippet) -> bool:
            if one.path == name:
                return name in self.index.sources.files
            return not any(line and line not in rows(one.path) for line in map(str.strip, one.text.split("\n")))

        return is_current

    def _still_there(self, name: str, is_current: Callable[[Snippet], bool]) -> tuple[Selection, Selection]:
        """The last selections for a document, without snippets of files that are gone or say something else."""
        last, files = self._selections.get(name, _Chosen()), self.index.sources.files
        there = tuple(filter(is_current, last.snippets.snippets))
        same = {path for path, source in last.files.items() if path == name or files.get(path) is source}
        signed = tuple(one for one in last.signed.snippets if one.path in same)
        return Selection(there, last.snippets.row), Selection(signed, last.signed.row)

    def _remember(self, name: str, selection: Selection, signed: Selection) -> None:
        files = {one.path: self.index.sources.files.get(one.path) for one in signed.snippets}
        self._selections[name] = _Chosen(selection, signed, files)
        self._selections.move_to_end(name)
        while len(self._selections) > _MAX_DOCUMENTS:
            self._selections.popitem(last=False)


def _rows(text: bytes, at: int) -> tuple[list[str], int]:
    """The rows of a text, and the row of an offset. Of a long text, those between its beginning and the cursor's
    surroundings are empty, and those below are left out: what is read does not grow with it.
    """
    begin, end = text.rfind(b"\n", 0, max(at - _FAR, 0)) + 1, text.find(b"\n", at + _FAR)
    head = text.find(b"\n", _FAR, begin) + 1 or begin
    above = plain(text[:head].decode()).split("\n")
    around = plain(text[begin : end if end >= 0 else None].decode()).split("\n")
    return [*above[:-1], *[""] * _count(text, head, begin), *around], _count(text, 0, at)


def _count(text: bytes, begin: int, end: int) -> int:
    """The line ends in a part of a text."""
    feeds = text.count(b"\n", begin, end)
    if text.find(b"\r", begin, end) < 0:
        return feeds
    return feeds + text.count(b"\r", begin, end) - text.count(b"\r\n", begin, end)
