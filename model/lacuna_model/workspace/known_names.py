"""Says of the names that a fill uses where they are declared: in the file, the project, a package, or nowhere.

By names alone, not by types: a plain name that stands elsewhere in the file is taken to be declared, and a member of an
unknown receiver to be known where anything has a member of that name. What cannot be judged does not count.
"""

import posixpath
import re
from collections import deque
from collections.abc import Iterator
from functools import cached_property, lru_cache

from lacuna_model.core.names import NameEvidence, NameKind, NameUse
from lacuna_model.core.params import InfillRequest, Region
from lacuna_model.languages.language import Language
from lacuna_model.languages.registry import language_for
from lacuna_model.next_edit.scopes import SELVES, ParsedText
from lacuna_model.next_edit.tokens import TokenizedText, is_name
from lacuna_model.snippets.imports import Import, imports, module_file, module_files
from lacuna_model.snippets.packages.environment import SCRIPTS
from lacuna_model.snippets.packages.index import PackageIndex
from lacuna_model.snippets.references import without_texts
from lacuna_model.snippets.sources import Sources
from lacuna_model.snippets.words import plain
from lacuna_model.text.lines import CLOSER_OF, closers
from lacuna_model.workspace.builtin_names import MEMBERS, NAMES

# Characters of the file that are looked at: its first ones, and those on each side of the gap.
_FAR = 1 << 15
# Characters that are read at once, and so many of these parts are kept, because most stay as they are from key to key.
_PART, _KEPT = 1 << 13, 64
# Characters before the gap in which a string or a comment may be open.
_MAX_TEXT = 1 << 18
# Longer fills are judged by their first characters.
_MAX_FILL = 4_000
# Rows above the gap that its statement may begin in.
_ROWS = 8
_WORD = re.compile(r"(\.\s*)?([^\W\d]\w*)")
# Comments and strings, and what is open at the end of a text.
_PYTHON_TEXT = re.compile(
    r"(\"{3}|'{3})(?:\\.|[^\\])*?(?:\1|(?P<whole>\Z))|\"(?:\\.|[^\"\\\n])*(?:\"|(?P<double>\Z))?"
    r"|'(?:\\.|[^'\\\n])*(?:'|(?P<single>\Z))?|#[^\n]*(?P<comment>\Z)?",
    re.DOTALL,
)
_SCRIPT_TEXT = re.compile(
    r"/\*.*?(?:\*/|(?P<whole>\Z))|\"(?:\\.|[^\"\\\n])*(?:\"|(?P<double>\Z))?"
    r"|'(?:\\.|[^'\\\n])*(?:'|(?P<single>\Z))?|`(?:\\.|[^`\\])*(?:`|(?P<template>\Z))?|//[^\n]*(?P<comment>\Z)?",
    re.DOTALL,
)
# A line that defines a method of a class of JavaScript.
_METHOD = re.compile(
    r"(?!(?:if|for|while|switch|catch|with|function|return|await|typeof|new)\b)"
    r"(?:(?:public|private|protected|static|async|get|set|abstract|override|readonly)\s+)*[\w$#]+\s*(?:<[^()]*>)?\("
    r"[^\n]*\)[^;,\n]*(?:\{|:[^;,\n{]*;)[ \t]*(?:\n|\Z)"
)
_DOTS = frozenset((".", "?.", "::"))


def known_names(
    request: InfillRequest,
    region: Region,
    sources: Sources | None = None,
    packages: PackageIndex | None = None,
    path: str = "",
) -> "KnownNames | None":
    """What is known around a region of a request; None in a language whose names are not known.

    ``path`` is that of the document in the workspace whose ``sources`` these are.
    """
    language = language_for(request.path, request.language)
    if language is None or language.name not in NAMES:
        return None
    text = request.text.encode()
    before, after = text[: region.start].decode(), text[region.end :].decode()
    others = "\n".join(one.text for one in request.snippets)
    return KnownNames(before, after, path or request.path, language, sources or Sources(), packages, others)


class KnownNames:
    """What is known around one gap, between the texts ``before`` and ``after``.

    ``path`` is that of the file in the workspace. ``others`` are the texts of further files, such as the snippets that
    a client sends.
    """

    def __init__(
        self,
        before: str,
        after: str,
        path: str,
        language: Language,
        sources: Sources,
        packages: PackageIndex | None = None,
        others: str = "",
    ) -> None:
        self._before, self._after = plain(before), plain(after)
        self._path, self._folder, self._language = path, posixpath.dirname(path), language
        self._sources, self._packages, self._others = sources, packages, others
        self._kinds: dict[tuple[str, str], NameKind | None] = {}

    def evidence(self, fill: str) -> NameEvidence | None:
        """How many of the names of a fill are known; None where it cannot be parsed."""
        uses = self.uses(fill)
        return NameEvidence.of(uses) if uses is not None else None

    def uses(self, fill: str) -> tuple[NameUse, ...] | None:
        """The names that a fill uses and does not declare, each once in their order; None where it cannot be parsed."""
        if self._is_in_text:
            return ()
        head, fill = self._head, plain(fill[:_MAX_FILL])
        if self._language.name in SCRIPTS and _METHOD.match(head + fill):
            head = f"class _ {{{head}"  # elsewhere it would be a call
        shown = head + fill
        text = shown + closers(shown)
        tokens = TokenizedText(text)
        used = [
            (index, token.text)
            for index, token in enumerate(tokens.all)
            if token.end > len(head) and is_name(token.text)
        ]
        scopes = ParsedText(tokens, self._language).scopes(list(dict.fromkeys(name for _, name in used)))
        if scopes is None:
            return None
        roles = [(index, name, scopes.at(index)) for index, name in used]
        own = {name for _, name, one in roles if one.declares}
        found = dict[tuple[str, str], NameUse]()
        for index, name, one in roles:
            if one.role not in ("variable", "member") or _is_made(tokens, index):
                continue
            is_member = index > 0 and tokens.texts[index - 1] in _DOTS
            receiver = _receiver(tokens, index) if is_member else ""
            if (one.role == "member" and not is_member) or (receiver if is_member else name) in own:
                continue
            if (kind := self._kind(receiver or ".", name) if is_member else self._kind("", name)) is not None:
                end = len(text[len(head) : tokens.all[index].end].encode())
                found.setdefault((receiver or "." * is_member, name), NameUse(name, kind, end))
        return tuple(found.values())

    def _kind(self, receiver: str, name: str) -> NameKind | None:
        """Where a name is declared, behind the dot of a receiver if there is one; asked again for each longer fill."""
        if (receiver, name) not in self._kinds:
            self._kinds[receiver, name] = self._member(receiver, name) if receiver else self._plain(name)
        return self._kinds[receiver, name]

    def _plain(self, name: str) -> NameKind:
        """Where a name without a receiver is declared."""
        if name in self._imports:
            return "imported"
        if name in NAMES[self._language.name]:
            return "builtin"
        if self._is_named(name):
            return "declared"
        if self._sources.places(name) or name in self._other_words:
            return "project"
        return "package" if self._is_in_package(name) else "nowhere"

    def _member(self, receiver: str, name: str) -> NameKind | None:
        """Where a name behind a dot is declared; None where that cannot be judged."""
        imported = self._imports.get(receiver)
        if imported is not None and (kind := self._imported(imported, name)) != "members":
            return kind
        if self._is_member(name) or (receiver in SELVES and self._is_named(name)):
            return "declared"
        if self._language.name not in MEMBERS:
            return None
        if name in MEMBERS[self._language.name]:
            return "builtin"
        if self._is_named(name):
            return "declared"
        if self._sources.places(name) or name in self._other_words:
            return "project"
        if self._packages is not None and name in self._packages.members:
            return "package"
        return "members"

    def _imported(self, imported: Import, name: str) -> NameKind | None:
        """Where a member of something imported is declared; None where that cannot be judged.

        ``members`` where the import is no module, so that the name tells as behind any receiver.
        """
        files = module_files(imported, self._path, self._language.name, self._sources.by_stem, self._sources.by_folder)
        if files:
            known = [self._sources.files[file] for file in files if file in self._sources.files]
            if any(name in one.imports or any(name == it.name for it in one.definitions) for one in known):
                return "project"
            if imported.name == "default":
                return "members"
            return "nowhere" if known and not any(_is_open(one.imports, one.lines) for one in known) else None
        if self._packages is None or self._is_inside(imported):
            return "members"
        if imported.name:
            owner = self._packages.named(imported, self._language.name, self._folder)
            if owner is not None and name in owner.members:
                return "package"
            if self._language.name != "python":
                return "members"
        module = f"{imported.module}.{imported.name}" if imported.name else imported.module
        offered = self._packages.offers(Import(module, name), self._language.name, self._folder)
        if offered is None:
            return "members" if imported.name else None
        return "package" if offered else "nowhere"

    def _is_in_package(self, name: str) -> bool:
        """Whether one of the packages that the file imports offers a name."""
        if self._packages is None or name not in self._packages.members:
            return False
        modules = {one.module for one in self._imports.values() if not self._is_inside(one)}
        return any(
            self._packages.offers(Import(module, name), self._language.name, self._folder) for module in sorted(modules)
        )

    def _is_inside(self, imported: Import) -> bool:
        return module_file(imported, self._path, self._language.name, self._sources.by_stem) is not None

    @cached_property
    def _head(self) -> str:
        """The text before the gap from its statement's first row on, without the indentation of that."""
        lines = self._before[-_FAR:].split("\n")
        first, open_since, lowest = len(lines) - 1, 0, 0
        for row in range(first, max(-1, first - _ROWS), -1):
            open_since += _closed(lines[row], "([{" if self._language.columns else "([")
            if open_since < lowest:
                first, lowest = row, open_since
        return "\n".join(lines[first:]).lstrip()

    @property
    def _is_in_text(self) -> bool:
        """Whether the gap is in a string or a comment."""
        return bool(self._row.open)

    @cached_property
    def _above(self) -> list["_Part"]:
        """The rows above the gap's."""
        return list(_parts(self._before[: self._before.rfind("\n") + 1], self._language.name))

    @cached_property
    def _row(self) -> "_Part":
        """The row before the gap, without the word that the gap stands behind, from the text on that is open in it."""
        row = re.sub(r"\w+$", "", self._before[self._before.rfind("\n") + 1 :])
        return _Part((self._above[-1].open if self._above else "") + row, self._language.name)

    @cached_property
    def _near(self) -> list["_Part"]:
        """The parts of the file that are looked at."""
        many = _FAR // _PART
        above = self._above if len(self._above) <= 2 * many else [*self._above[:many], *self._above[-many:]]
        return [*above, self._row, _part(self._after[:_FAR], self._language.name)]

    def _is_named(self, name: str) -> bool:
        """Whether a plain name stands elsewhere in the file."""
        return any(name in part.names for part in self._near)

    def _is_member(self, name: str) -> bool:
        """Whether a name stands behind a dot elsewhere in the file."""
        return any(name in part.members for part in self._near)

    @cached_property
    def _imports(self) -> dict[str, Import]:
        return {name: one for part in self._near for name, one in part.imports.items()}

    @cached_property
    def _other_words(self) -> frozenset[str]:
        return frozenset(name for _, name in _WORD.findall(self._others))


class _Part:
    """A part of a file that begins in code, and what it tells on its own."""

    def __init__(self, text: str, language: str) -> None:
        self._text, self._language = text, language

    @cached_property
    def open(self) -> str:
        """The string or comment that does not end in it; "" where there is none."""
        pattern = _PYTHON_TEXT if self._language == "python" else _SCRIPT_TEXT
        for match in deque(pattern.finditer(self._text), maxlen=1):
            if any(open_at is not None for open_at in match.groupdict().values()):
                return match[0]
        return ""

    @cached_property
    def names(self) -> frozenset[str]:
        """The plain names."""
        return frozenset(name for dot, name in self._words if not dot)

    @cached_property
    def members(self) -> frozenset[str]:
        """The names behind a dot."""
        return frozenset(name for dot, name in self._words if dot)

    @cached_property
    def _words(self) -> frozenset[tuple[str, str]]:
        return frozenset(_WORD.findall(without_texts(self._text, self._language)))

    @cached_property
    def imports(self) -> dict[str, Import]:
        """The imports that are whole in it."""
        return imports(self._text, self._language)


_part = lru_cache(_KEPT)(_Part)


def _parts(text: str, language: str) -> Iterator[_Part]:
    """The last parts of a text, cut at blank lines; each has the string or comment that is open in the one before."""
    at, open_text = max(0, len(text) - _MAX_TEXT) // _PART * _PART, ""
    while at < len(text):
        end = text.find("\n\n", at + _PART) + 1 or len(text)
        yield (part := _part(open_text + text[at:end], language))
        at, open_text = end, part.open


def _is_made(tokens: TokenizedText, index: int) -> bool:
    """Whether a name is assigned, which may make it, or one of the variables of the environment."""
    return tokens.texts[index + 1 : index + 2] == ["="] or tokens.texts[max(index - 2, 0)] == "env"


def _receiver(tokens: TokenizedText, index: int) -> str:
    """The name before the dot of a member; "" where something else stands there."""
    before = tokens.texts[index - 2] if index >= 2 else ""
    bare = index < 3 or tokens.texts[index - 3] not in _DOTS
    return before if bare and is_name(before) else ""


def _is_open(found: dict[str, Import], lines: list[str]) -> bool:
    """Whether a file may offer names that are not seen in it."""
    return any(one.name == "*" for one in found.values()) or any(
        "__getattr__" in line or "exports" in line for line in lines
    )


def _closed(line: str, openers: str) -> int:
    """How many more of some brackets a line closes than it opens."""
    return sum(line.count(CLOSER_OF[opener]) - line.count(opener) for opener in openers)
