"""The signatures of what the cursor's line and those above it name: of installed packages and of receivers' classes."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lacuna_model.core.params import Snippet
from lacuna_model.files.secrets import holds_credential
from lacuna_model.snippets.definitions import CursorRows, Reference, outline, references
from lacuna_model.snippets.format import Splitter, counter, words
from lacuna_model.snippets.imports import Import
from lacuna_model.snippets.packages.index import PackageIndex
from lacuna_model.snippets.packages.module_names import Named
from lacuna_model.snippets.sources import Sources

# Of the tokens for snippets, the part that signatures have: one in so many.
SHARE = 4
# The rows above the cursor's whose names count.
ROWS = 2
# The rows above the cursor in which a call may begin, and the class of a receiver be named.
_CALL_ROWS, _CLASS_ROWS = 8, 60
# The most names behind a dot that are quoted.
_MAX_MEMBERS = 8
# Of more, those that share a word with the lines near are quoted, so many.
_MAX_SHARING = 3
# The characters that are quoted of a file, in which several signatures may be: its part of the prompt is small.
_MAX_TEXT = 200
# The characters of a list of names without signatures.
_MAX_LISTED = 120
_OPENED = re.compile(r"(?:[^\W\d]\w*(?:\.|::))*([^\W\d]\w*)(?:\.|::)(\w*)$")
_CALLED = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)[ \t]*$")
_MARK = re.compile(r"[()\[\]{}]|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|`(?:\\.|[^`\\])*`?")
_SCORE = 1.0


@dataclass(frozen=True, slots=True)
class _Signed:
    """A signature in a file, of a name that is used in a row; ``score`` says how near."""

    path: str
    text: str
    name: str
    row: int
    score: float


class Signatures:
    """Finds the signatures for a cursor."""

    def __init__(self, packages: PackageIndex, sources: Sources, cursor: CursorRows) -> None:
        self._packages, self._sources, self._cursor = packages, sources, cursor
        self._language, self._folder = cursor.language, posixpath.dirname(cursor.path)

    def candidates(self) -> Iterator[Snippet]:
        """A snippet for every file of which something is named, with the reason and a score in 0..1."""
        for wanted in filter(self._is_outside, self._cursor.imports.values()):
            self._packages.named(wanted, self._language, self._folder)
        found: dict[str, list[_Signed]] = {}
        for one in self._signed():
            known = found.setdefault(one.path, [])
            room = _MAX_TEXT - sum(len(other.text) for other in known)
            is_new = all(one.text != other.text for other in known)
            if is_new and (not known or len(one.text) <= room) and not holds_credential(one.text):
                known.append(one)
        for path, some in found.items():
            if some:
                names = ", ".join(dict.fromkeys(f"`{one.name}`" for one in some))
                reason = f"how to use {names}, at line {max(one.row for one in some) + 1}"
                text = "".join(f"{one.text}\n" for one in some)
                yield Snippet(path, text, reason, max(one.score for one in some))

    def _signed(self) -> Iterator[_Signed]:
        """The signatures, the nearest first."""
        if (called := self._called()) is not None:
            qualifier, _, name = called.rpartition(".")
            own = Reference(name, qualifier.rpartition(".")[2], self._cursor.row, _SCORE, telling=True)
            yield from self._of(own)
        if (opened := _OPENED.search(self._cursor.head)) is not None:
            yield from self._behind(opened[1], opened[2])
        rows = self._cursor.typed(ROWS)
        above = self._cursor.row + 1 - len(rows)
        for use in references(rows, len(rows) - 1, self._language):
            yield from self._of(replace(use, row=use.row + above))

    def _of(self, use: Reference) -> Iterator[_Signed]:
        """The signature of a name that is imported, or a member of a module or of a class that is known."""
        imported = self._cursor.imports.get(use.qualifier or use.name)
        if imported is None:
            owner = self._class_of(use.qualifier) if use.qualifier else None
            if owner is not None and use.name in owner.members:
                yield _Signed(owner.path, owner.members[use.name], use.name, use.row, use.weight)
        elif self._is_outside(imported):
            wanted = _member(imported, use.name, self._language) if use.qualifier else imported
            found = self._packages.named(wanted, self._language, self._folder) if wanted.name else None
            text = found.signature if found is not None else ""
            if found is None and use.qualifier and imported.name:
                found = self._packages.named(imported, self._language, self._folder)
                text = found.members.get(use.name, "") if found is not None else ""
            if found is not None and _tells(text):
                yield _Signed(found.path, text, use.name, use.row, use.weight)

    def _behind(self, name: str, begun: str) -> Iterator[_Signed]:
        """What may stand behind a dot: names that begin as what is typed does; of many, those with words from near."""
        imported = self._cursor.imports.get(name)
        offered: dict[str, tuple[str, str]] = {}
        if imported is not None and self._is_outside(imported):
            offered = self._packages.offered(imported, self._language, self._folder)
        elif (owner := self._class_of(name)) is not None:
            offered = {one: (owner.path, text) for one, text in owner.members.items() if not one.startswith("_")}
        fitting = [
            (one, path, text)
            for one, (path, text) in offered.items()
            if one.startswith(begun) and not text.startswith("interface ")  # which is no value
        ]
        near = set(words("\n".join(self._cursor.typed(ROWS))))
        shared = {one: len(near & set(words(one))) for one, _, _ in fitting}
        fitting.sort(key=lambda it: (-shared[it[0]], len(it[0]), it[0]))
        are_many = len(fitting) > _MAX_MEMBERS
        sure = [it for it in fitting if shared[it[0]] or len(begun) > 1][:_MAX_SHARING] if are_many else fitting
        for one, path, text in sure:
            if _tells(text):
                yield _Signed(path, text, f"{name}.{one}", self._cursor.row, _SCORE)
        if are_many and imported is not None:
            text = _listed((one for one, _, _ in fitting), self._language)
            yield _Signed(fitting[0][1], text, name, self._cursor.row, _SCORE)

    def _class_of(self, receiver: str) -> Named | None:
        """The class of a package or the project that a variable is plainly of: annotated so, or made by it."""
        pattern = re.compile(
            rf"\b{re.escape(receiver)}\s*(?::\s*|=\s*(?:await\s+|new\s+)?|:\s*\w+\s*=\s*)([^\W\d]\w*(?:\.[^\W\d]\w*)*)"
        )
        for line in reversed(self._cursor.typed(_CLASS_ROWS - 1)):
            for match in pattern.finditer(line):
                if (found := self._class(match[1])) is not None:
                    return found
        return None

    def _class(self, name: str) -> Named | None:
        """The class with this name, as the file writes it."""
        qualifier, _, own = name.rpartition(".")
        if not own[:1].isupper():
            return None
        imported = self._cursor.imports.get(qualifier or own)
        if imported is None or not self._is_outside(imported):
            return self._own_class(own)
        wanted = _member(imported, own, self._language) if qualifier else imported
        found = self._packages.named(wanted, self._language, self._folder)
        return found if found is not None and found.members else None

    def _own_class(self, name: str) -> Named | None:
        """The class of the project with this name, if there is one such class."""
        places = self._sources.places(name)
        if len(places) != 1 or places[0] == self._cursor.path:
            return None
        for source, one in self._sources.defining(places[0], name):
            if one.kind == "class":
                inner = [other for other in source.definitions if other.parent == one.row]
                members = {other.name: " ".join(outline(source.lines, [other]).split()) for other in inner}
                return Named(name, source.path, "", {key: text.rstrip(":{ ") for key, text in members.items()})
        return None

    def _called(self) -> str | None:
        """What is called where an argument is being written; None where none is."""
        text = "\n".join(self._cursor.typed(_CALL_ROWS))
        open_at: list[int] = []
        for match in _MARK.finditer(text):
            if match[0] in "([{":
                open_at.append(match.start())
            elif match[0] in ")]}" and open_at:
                open_at.pop()
        while open_at and text[open_at[-1]] != "(":
            open_at.pop()
        called = _CALLED.search(text[max(0, open_at[-1] - 200) : open_at[-1]]) if open_at else None
        return called[1] if called is not None else None

    def _is_outside(self, imported: Import) -> bool:
        """Whether an import is of no file of the workspace."""
        return self._sources.file(imported, self._cursor.path, self._language) is None


def fitting(signatures: Iterable[Snippet], tokenizer: Splitter, budget: int) -> tuple[Snippet, ...]:
    """The first ones of some signatures that fit in their part of a budget of tokens for snippets."""
    found, left, count = list[Snippet](), budget // SHARE, counter(tokenizer)
    for one in signatures:
        left -= count(one)
        if left < 0:
            break
        found.append(one)
    return tuple(found)


def _member(imported: Import, name: str, language: str) -> Import:
    """The import of a name of a module that was imported itself."""
    inner = language == "python" and imported.name
    return Import(f"{imported.module}.{imported.name}" if inner else imported.module, name)


def _listed(names: Iterable[str], language: str) -> str:
    """The names of a module as its language lists them, as many as are short."""
    some, room = list[str](), _MAX_LISTED
    for name in names:
        room -= len(name) + 4
        if room < 0:
            break
        some.append(name)
    return f"__all__ = {some!r}" if language == "python" else f"export {{ {', '.join(some)} }}"


def _tells(signature: str) -> bool:
    """Whether a signature says more than a name: that of a function or a class."""
    return "(" in signature or "{" in signature
