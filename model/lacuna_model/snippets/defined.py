"""Finds the definitions of the names that the code around the cursor refers to, in a workspace and beside a file."""

import re
from collections.abc import Iterator
from pathlib import Path

from lacuna_model.core.params import Snippet
from lacuna_model.files.opening import absolute, listed
from lacuna_model.files.scanning import admits, read_source
from lacuna_model.languages.registry import language_for
from lacuna_model.snippets.definitions import CursorRows, Definition, Reference, outline, quote, references
from lacuna_model.snippets.format import Splitter, counter
from lacuna_model.snippets.imports import Import, module_of
from lacuna_model.snippets.selection import Selection, select
from lacuna_model.snippets.sources import SnippetFile, Sources

# The certainty, in 0..1, that a definition found in this way is the right one.
_IMPORTED = 1.0
_SAME_FILE = 0.9
_ONLY_ONE = 0.7
_MEMBER = 0.3
_MENTIONED = 0.5  # a module without a dot behind it
# A name defined in more files than this is ignored.
_MAX_PLACES = 4
# A file may re-export a name that it imports, as the __init__ of a package does.
_MAX_HOPS = 3
# Languages that may use each other's definitions.
_FAMILIES = (frozenset({"javascript", "typescript", "tsx"}), frozenset({"c", "cpp"}))
# Languages that mark what other files may name, and how.
_MARKING = frozenset({"javascript", "typescript", "tsx", "rust"})
_EXPORTED = re.compile(r"\s*(export|pub)\b")
MAX_ENTRIES = 5000  # of the folder, in any order
MAX_READ = 16  # files
_WORD = re.compile(r"\w+")


class Definitions:
    """Finds the definitions for a cursor."""

    def __init__(self, sources: Sources, cursor: CursorRows) -> None:
        self._sources, self._cursor = sources, cursor
        self._path, self._language = cursor.path, cursor.language
        self._view = frozenset(cursor.view)

    def candidates(self) -> Iterator[Snippet]:
        """A snippet for every definition found, with the reason and a score in 0..1."""
        lines, row = self._cursor.lines, self._cursor.row
        if (module := module_of(lines[row], self._language)) is not None:
            yield from self._outline(module, module.module, row, 1.0, 1.0)
        for use in references(lines, row, self._language):
            imported = self._cursor.imports.get(use.name) if use.opened or not use.qualifier else None
            if self._language == "rust" and use.opened and use.qualifier in ("crate", "self", "super"):
                imported = Import("", use.name)
            if imported is not None:  # what it offers behind a dot
                sure = 1.0 if use.opened else _MENTIONED
                yield from self._outline(imported, use.name, use.row, use.weight, sure)
            for source, one, sure in self._meant(use):
                if source.path == self._path and source.lines[one.row] in self._view:  # the model reads it anyway
                    continue
                reason = f"defines `{one.name}`, used at line {use.row + 1}"
                yield Snippet(source.path, quote(source.lines, one), reason, sure * (0.3 + 0.7 * use.weight))

    def _outline(self, imported: Import, name: str, row: int, weight: float, sure: float) -> Iterator[Snippet]:
        """What the files of a module define, which is used in a row."""
        for source in self._sources.module(imported, self._path, self._language):
            text = outline(source.lines, _public(source, imported.name)) if source.path != self._path else ""
            if text:
                reason = f"the module `{name}`, used at line {row + 1}"
                yield Snippet(source.path, text, reason, sure * (0.3 + 0.7 * weight))

    def _meant(self, use: Reference) -> Iterator[tuple[SnippetFile, Definition, float]]:
        """The definitions that a use may refer to, each with its certainty."""
        imported = self._cursor.imports.get(use.qualifier or use.name)
        if imported is None:
            yield from self._by_name(use)
        elif use.qualifier:
            own = imported, self._path, self._language
            for file in self._sources.module(*own) or filter(None, [self._sources.file(*own)]):
                for source, one in self._sources.defining(file.path, use.name):
                    # A member may belong to the imported class or to another class of its file.
                    yield source, one, _IMPORTED if one.parent < 0 else _MEMBER
        elif imported.name:
            found = self._in_module(imported, self._path, _MAX_HOPS)
            yield from ((source, one, _IMPORTED) for source, one in found)

    def _in_module(self, wanted: Import, path: str, hops: int) -> Iterator[tuple[SnippetFile, Definition]]:
        """The definitions of an imported name, also through files that re-export it."""
        if (source := self._sources.file(wanted, path, self._language)) is None:
            return
        name = _default(source) if wanted.name == "default" else wanted.name
        found = [(source, one) for source, one in self._sources.defining(source.path, name) if one.parent < 0]
        yield from found
        if found or not hops:
            return
        for local, one in source.imports.items():
            if local == name or one.name == "*":
                yield from self._in_module(
                    Import(one.module, one.name if local == name else name), source.path, hops - 1
                )

    def _by_name(self, use: Reference) -> Iterator[tuple[SnippetFile, Definition, float]]:
        """All definitions of a name in the workspace, if they are few."""
        if not (use.telling or use.opened):
            return
        places = [path for path in self._sources.places(use.name) if self._akin(path)]
        if not 0 < len(places) <= _MAX_PLACES:
            return
        for source, one in (found for path in places for found in self._sources.defining(path, use.name)):
            if use.telling or one.kind in ("class", "module"):
                member = one.parent >= 0 and use.qualifier not in ("self", "this", "cls")
                sure = _SAME_FILE if source.path == self._path else _ONLY_ONE / len(places)
                yield source, one, min(sure, _MEMBER / len(places)) if member else sure

    def _akin(self, path: str) -> bool:
        source = self._sources.files.get(path)
        both = {source.language if source else "", self._language}
        return len(both) == 1 or any(both <= family for family in _FAMILIES)


def _public(source: SnippetFile, name: str) -> list[Definition]:
    """The definitions of a module that other files may name; those of its ``default`` are not marked."""
    outer = [one for one in source.definitions if one.parent < 0 and not one.name.startswith("_")]
    if source.language == "go":
        return [one for one in outer if one.name[0].isupper()]
    marked = [one for one in outer if _EXPORTED.match(source.lines[one.row])]
    return marked if marked and name != "default" and source.language in _MARKING else outer


def _default(source: SnippetFile) -> str:
    """The name that a script exports by default, taken to be its first class or function."""
    return next((one.name for one in source.definitions if one.kind != "value"), "")


def beside(
    path: Path, text: str, at: int, language: str = "", *, tokenizer: Splitter, budget: int
) -> tuple[Snippet, ...]:
    """The snippets for a cursor at ``at`` (bytes) of the document ``path``, in the order in which the model reads them.

    Together they take at most ``budget`` tokens.
    """
    known = language_for(path.name, language)
    if known is None:
        return ()
    sources, root = Sources(), absolute(path).parent
    for name in _named(root, text, path.name):
        if admits(root, root / name) and (content := read_source(root, root / name)) is not None:
            sources.put(name, content)
    cursor = CursorRows.at(at, text.encode(), path.name, known.name)
    found = Definitions(sources, cursor).candidates()
    return select(Selection(), found, cursor.row, "\n".join(cursor.view), counter(tokenizer), budget).snippets


def _named(root: Path, text: str, own: str) -> list[str]:
    """The names of the files of a folder whose stem is a word of a text."""
    words, found = set(_WORD.findall(text)), list[str]()
    for entry in listed(root, MAX_ENTRIES):
        stem, _, ending = entry.name.partition(".")
        if stem in words and ending and entry.name != own and entry.is_file(follow_symlinks=False):
            found.append(entry.name)
    return found[:MAX_READ]
