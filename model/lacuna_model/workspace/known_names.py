"""Says of the names that a fill uses whether the file, the project, a package or the language declares them.

By names alone, not by types: a plain name that stands elsewhere in the file is taken to be declared, and a member of an
unknown receiver to be known where anything has a member of that name. What cannot be judged does not count.
"""

import posixpath
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from functools import cached_property, lru_cache

from lacuna_model.core.params import InfillRequest, Region
from lacuna_model.decode.gate import UNKNOWN, NameKind, NameUse
from lacuna_model.languages.language import Language
from lacuna_model.next_edit.changes import TokenizedText, is_name
from lacuna_model.next_edit.scopes import ParsedText
from lacuna_model.snippets.definitions import without_texts
from lacuna_model.snippets.format import plain
from lacuna_model.snippets.imports import Import, imports
from lacuna_model.snippets.packages.environment import SCRIPTS
from lacuna_model.snippets.packages.index import PackageIndex
from lacuna_model.snippets.sources import SnippetFile, Sources
from lacuna_model.text.lines import CLOSER_OF, closers
from lacuna_model.workspace.builtin_names import MEMBERS, NAMES

# Characters of the file that are looked at: its first ones and those behind the gap; and those before the gap.
_FAR, _FAR_ABOVE = 1 << 15, 1 << 18
# Longer fills are judged by their first characters, and a receiver is found in so many before its member.
_MAX_FILL, _MAX_RECEIVER = 4_000, 200
# Rows above the gap that its statement may begin in.
_ROWS = 8
# A line that defines a method of a class of JavaScript.
_METHOD = re.compile(
    r"(?!(?:if|for|while|switch|catch|with|function|return|await|typeof|new)\b)"
    r"(?:(?:public|private|protected|static|async|get|set|abstract|override|readonly)\s+)*[\w$#]+\s*(?:<[^()]*>)?\("
    r"[^\n]*\)[^;,\n]*(?:\{|:[^;,\n{]*;)[ \t]*(?:\n|\Z)"
)
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
_DOT_BEFORE = re.compile(r"((?<!\w)[^\W\d]\w*)?\s*(?:\?\.|::|(?<!\.)\.)[ \t]*\Z")
_NAME = re.compile(r"(?<!\w)[^\W\d]\w*")
# The beginning of a row behind which a name is declared, or imported.
_DECLARING = re.compile(
    r"^\s*(?:import|from|use|package|global|nonlocal)\b|<[^<>()]*\Z"
    r"|\b(?:as|class|const|def|enum|fn|for|func|function|interface|let|mod|namespace|struct|trait|type|var)\s+\Z"
)
_MODIFIERS = re.compile(r"\s*(?:(?:public|private|protected|static|async|get|set|abstract|override)\s+)*[*#]?")


class FilePart:
    """A part of a file that begins in code, and what it tells on its own."""

    def __init__(self, text: str, language: str) -> None:
        self._text, self._language = text, language

    @cached_property
    def open(self) -> str:
        """The string or comment that does not end in it; "" where there is none."""
        pattern = _PYTHON_TEXT if self._language == "python" else _SCRIPT_TEXT
        last = deque(pattern.finditer(self._text), maxlen=1)
        return last[0][0] if last and last[0].lastgroup else ""

    @cached_property
    def words(self) -> frozenset[tuple[str, str]]:
        """The names, each with the dot before it, or "" where none stands there."""
        return frozenset(
            ("." * bool(dot), name) for dot, name in _WORD.findall(without_texts(self._text, self._language))
        )

    @cached_property
    def imports(self) -> dict[str, Import]:
        """The imports that are whole in it."""
        return imports(self._text, self._language)


# What stands above a gap's row and behind the gap stays as it is for some keys.
_part = lru_cache(4)(FilePart)


class KnownNames:
    """What is known around a region of a request.

    ``path`` is that of the document in the workspace whose ``sources`` these are.
    """

    def __init__(
        self,
        request: InfillRequest,
        region: Region,
        language: Language,
        sources: Sources,
        packages: PackageIndex,
        path: str,
    ) -> None:
        text = request.text.encode()
        self._before, self._after = plain(text[: region.start].decode()), plain(text[region.end :].decode())
        self._here, self._folder, self._language = (path, language.name), posixpath.dirname(path), language
        self._sources, self._packages = sources, packages
        self._other_words = {name for one in request.snippets for _, name in _WORD.findall(one.text)}
        self._kinds: dict[tuple[str, str], NameKind | None] = {}
        self._offers: dict[str, list[str]] = {}
        self._instead = set[str]()

    def read(self) -> None:
        """Read the names of the file, which takes some milliseconds for one that is new."""
        _ = self._is_in_text, [(one.words, one.imports) for one in self._near]

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
            (index, name)
            for index, name in enumerate(tokens.texts)
            if tokens.ends[index + 1] >= len(head) and is_name(name)  # what stands right before the gap may declare
        ]
        scopes = ParsedText(tokens, self._language).scopes(tuple(dict.fromkeys(name for _, name in used)))
        if scopes is None:
            return None
        roles = [(index, name, scopes.at(index), _is_made(tokens, index)) for index, name in used]
        own = {name for _, name, one, _ in roles if one.declares}
        found = dict[tuple[str, str, bool], NameUse]()
        for index, name, one, is_made in roles:
            receiver = _receiver(text, tokens.starts[index])
            is_before = tokens.ends[index + 1] == len(head)
            is_used = one.role == "variable" or (one.role == "member" and receiver)
            if is_before or is_made or not is_used or (receiver or name) in own:
                continue
            if (kind := self._kind(receiver, name)) is not None:
                end = len(text[len(head) : tokens.ends[index + 1]].encode())
                is_instead = fill[: max(tokens.starts[index] - len(head), 0)] in self._instead
                found.setdefault((receiver, name, is_instead), NameUse(name, kind, end, is_instead))
        return tuple(found.values())

    def nowhere(self, fill: str, since: int) -> int | None:
        """Where the first name begins that ends at ``since`` or behind it, and that is surely nowhere.

        It is negative for a name that begins before the gap. What the fill ends with may go on, and is not judged.
        """
        if self._is_in_text:
            return None
        shown, first = self._head + fill, len(self._head)
        for name in _NAME.finditer(shown, shown.rfind("\n", 0, first + since) + 1):
            if first + since <= name.end() < len(shown) and name.end() > first:
                receiver = _receiver(shown, name.start())
                if receiver == "" and not self._is_sure(shown, name.start(), name.end()):
                    continue
                if receiver == "." or self._kind(receiver, name[0]) != "nowhere":
                    continue
                if not FilePart(shown[: name.start()], self._language.name).open:
                    end = len(plain(shown[first : name.end()]).encode())
                    if any(one.kind == "nowhere" and one.end == end for one in self.uses(fill) or ()):
                        return name.start() - first
        return None

    def leads(self, fill: str, start: int) -> bool:
        """Whether the name that begins at ``start`` is known, or may become so where the fill ends with it."""
        shown, at = self._head + fill, len(self._head) + start
        name = _NAME.match(shown, at)
        if name is None:
            return False
        receiver = _receiver(shown, at)
        if name.end() < len(shown):
            return self._kind(receiver, name[0]) not in UNKNOWN
        known = self._offered(receiver) if receiver else self._visible
        place = bisect_left(known, name[0])
        return place < len(known) and known[place].startswith(name[0])

    def ends(self, fill: str, start: int) -> bool:
        """Whether the name that begins at ``start`` ends in the fill."""
        shown = self._head + fill
        name = _NAME.match(shown, len(self._head) + start)
        return name is not None and name.end() < len(shown)

    def wrote_instead(self, before: str) -> None:
        """Take in that the name behind ``before``, the fill up to it, stands in the place of one that is nowhere."""
        self._instead.add(plain(before))

    def ended(self, fill: str) -> str:
        """A fill that ends here: with what the text behind the gap makes of its last word, and the end of the row."""
        behind = re.match(r"\w*", self._after)
        return f"{fill}{behind[0] if behind is not None else ''}\n"

    def _is_sure(self, shown: str, start: int, end: int) -> bool:
        """Whether a plain name is used where it stands, whatever follows: it is called, or a type, or has a member."""
        row, behind = shown[shown.rfind("\n", 0, start) + 1 : start], shown[end : end + 2].lstrip(" ")
        if _DECLARING.search(row):
            return False
        if behind.startswith("("):
            return self._language.name not in SCRIPTS or _MODIFIERS.fullmatch(row) is None
        if behind.startswith("."):
            return not self._language.lexicon.columns or _closed(shown[:start], "([{") >= 0
        return shown[start].isupper() and bool(row.strip())

    def _offered(self, receiver: str) -> list[str]:
        """The names that something imported has, in their order; empty for what is not known as a whole."""
        if receiver not in self._offers:
            imported, found = self._imports.get(receiver), set[str]()
            if imported is not None and (files := self._sources.module(imported, *self._here)):
                found.update(*map(_names_in, files))
            elif imported is not None:
                found = self._packages.names(imported, self._language.name, self._folder)
            self._offers[receiver] = sorted(found)
        return self._offers[receiver]

    @cached_property
    def _visible(self) -> list[str]:
        """The plain names of the file, what it imports, and what the language has, in their order."""
        here = (name for one in self._near for dot, name in one.words if not dot)
        return sorted({*here, *self._imports, *NAMES[self._language.name]})

    def _kind(self, receiver: str, name: str) -> NameKind | None:
        """Whether a name is known, behind the dot of a receiver if there is one; asked again for each longer fill."""
        if (receiver, name) not in self._kinds:
            self._kinds[receiver, name] = self._member(receiver, name) if receiver else self._plain(name)
        return self._kinds[receiver, name]

    def _plain(self, name: str) -> NameKind:
        """Whether a name without a receiver is known."""
        is_near = name in self._imports or name in NAMES[self._language.name] or self._is_here(name)
        return "known" if is_near or self._is_in_project(name) or self._is_in_package(name) else "nowhere"

    def _member(self, receiver: str, name: str) -> NameKind | None:
        """Whether a name behind a dot is known; None where that cannot be judged."""
        imported = self._imports.get(receiver)
        if imported is not None and (kind := self._imported(imported, name)) != "members":
            return kind
        if self._is_here(name, "."):
            return "known"
        if self._language.name not in MEMBERS:
            return None
        is_near = name in MEMBERS[self._language.name] or self._is_here(name)
        return "known" if is_near or self._is_in_project(name) or name in self._packages.members else "members"

    def _imported(self, imported: Import, name: str) -> NameKind | None:
        """Whether a member of something imported is known; None where that cannot be judged.

        ``members`` where the import is no module, so that the name tells as behind any receiver.
        """
        if files := self._sources.module(imported, *self._here):
            if any(name in _names_in(file) for file in files):
                return "known"
            if imported.name == "default":
                return "members"
            return None if any(map(_is_open, files)) else "nowhere"
        if self._is_inside(imported):
            return "members"
        if imported.name:
            owner = self._packages.named(imported, self._language.name, self._folder)
            if owner is not None and name in owner.members:
                return "known"
            if self._language.name != "python":
                return "members"
        module = f"{imported.module}.{imported.name}" if imported.name else imported.module
        offered = self._packages.offers(Import(module, name), self._language.name, self._folder)
        if offered is None:
            return "members" if imported.name else None
        return "known" if offered else "nowhere"

    def _is_in_project(self, name: str) -> bool:
        """Whether another file of the project, or a snippet of the request, has a name."""
        return bool(self._sources.places(name)) or name in self._other_words

    def _is_in_package(self, name: str) -> bool:
        """Whether one of the packages that the file imports offers a name."""
        if name not in self._packages.members:
            return False
        modules = {one.module for one in self._imports.values() if not self._is_inside(one)}
        return any(
            self._packages.offers(Import(module, name), self._language.name, self._folder) for module in sorted(modules)
        )

    def _is_inside(self, imported: Import) -> bool:
        return self._sources.file(imported, *self._here) is not None

    @cached_property
    def _head(self) -> str:
        """The text before the gap from its statement's first row on, without the indentation of that."""
        lines = self._before[-_FAR:].split("\n")
        first, open_since, lowest = len(lines) - 1, 0, 0
        for row in range(first, max(-1, first - _ROWS), -1):
            open_since += _closed(lines[row], "([{" if self._language.lexicon.columns else "([")
            if open_since < lowest:
                first, lowest = row, open_since
        return "\n".join(lines[first:]).lstrip()

    @property
    def _is_in_text(self) -> bool:
        """Whether the gap is in a string or a comment."""
        return bool(self._row.open)

    @cached_property
    def _above(self) -> FilePart:
        """The rows above the gap's, those that are not too far away."""
        far = len(self._before) - _FAR_ABOVE
        at = 0
        if far > 0:
            at = self._before.find("\n\n", far)
            at = at if at >= 0 else self._before.find("\n", far) + 1
        return _part(self._before[at : self._before.rfind("\n") + 1], self._language.name)

    @cached_property
    def _row(self) -> FilePart:
        """The row before the gap, without the word that the gap stands behind, from the text on that is open in it."""
        row = re.sub(r"\w+$", "", self._before[self._before.rfind("\n") + 1 :])
        return FilePart(self._above.open + row, self._language.name)

    @cached_property
    def _near(self) -> list[FilePart]:
        """The parts of the file that are looked at."""
        first = self._before[:_FAR] if len(self._before) > _FAR_ABOVE else ""
        others = (_part(text, self._language.name) for text in (first, self._after[:_FAR]))
        return [self._above, self._row, *others]

    def _is_here(self, name: str, dot: str = "") -> bool:
        """Whether a name stands elsewhere in the file, behind a dot or not."""
        return any((dot, name) in one.words for one in self._near)

    @cached_property
    def _imports(self) -> dict[str, Import]:
        return {name: one for near in self._near for name, one in near.imports.items()}


def _is_made(tokens: TokenizedText, index: int) -> bool:
    """Whether a name is assigned, which may make it, or one of the variables of the environment."""
    return tokens.texts[index + 1 : index + 2] == ["="] or tokens.texts[max(index - 2, 0)] == "env"


def _receiver(text: str, start: int) -> str:
    """The name before the dot before a place; "" where no dot stands there, "." where something else has the member."""
    before = text[max(start - _MAX_RECEIVER, 0) : start]
    dot = _DOT_BEFORE.search(before) if before.rstrip(" \t").endswith((".", "::")) else None
    if dot is None:
        return ""
    return dot[1] if dot[1] and not before[: dot.start(1)].rstrip().endswith((".", "::")) else "."


def _names_in(file: SnippetFile) -> Iterator[str]:
    """The names that a file of the project offers to others."""
    yield from file.imports
    yield from (one.name for one in file.definitions)


def _is_open(file: SnippetFile) -> bool:
    """Whether a file may offer names that are not seen in it."""
    is_starred = any(one.name == "*" for one in file.imports.values())
    return is_starred or any("__getattr__" in line or "exports" in line for line in file.lines)


def _closed(line: str, openers: str) -> int:
    """How many more of some brackets a line closes than it opens."""
    return sum(line.count(CLOSER_OF[opener]) - line.count(opener) for opener in openers)
