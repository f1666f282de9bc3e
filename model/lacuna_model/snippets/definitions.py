"""Finds the definitions of a file with tree-sitter; the cursor, and the names that the code around it refers to."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from typing import Literal

from tree_sitter import Node, Query

from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import matched
from lacuna_model.snippets.format import plain
from lacuna_model.snippets.imports import Import, imports

Kind = Literal["function", "class", "value", "module"]
KINDS: tuple[Kind, ...] = ("function", "class", "value", "module")
# What is defined in these can be named from outside.
_OPEN = ("class", "module")

# Nodes that belong to the definition inside them: decorators, `export`, `template <...>`, `typedef`.
_WRAPPERS = frozenset({"decorated_definition", "export_statement", "template_declaration", "type_definition"})
_COMMENT_STARTS = ("//", "/*", "*")

# The most rows quoted of a definition, a constructor's body and a documentation text.
_FUNCTION_ROWS = 10
_CLASS_ROWS = 24
_CONSTRUCTOR_ROWS = 6
_DOCUMENTATION_ROWS = 3
_VALUE_ROWS = 4
# The most rows of a signature, and of the signatures of a module.
_SIGNATURE_ROWS = 6
_OUTLINE_ROWS = 40
_CONSTRUCTORS = frozenset({"__init__", "constructor", "new"})
# Rows above and below the cursor that are searched; nearer names have more weight.
ROWS_ABOVE = 50
ROWS_BELOW = 15
# Rows that are read of a document at its beginning, and on each side of the cursor.
_FAR = 1_000
_HALF_WEIGHT_ROWS = 16
# Names in strings and comments are no references.
_HASH_TEXT = re.compile(r"(\"{3}|'{3}).*?(\1|\Z)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*", re.DOTALL)
_SLASH_TEXT = re.compile(r"/\*.*?(\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"|//[^\n]*", re.DOTALL)
# A name that a keyword defines here is not a use.
_NAME = re.compile(
    r"(\b(?:def|class|function|func|fn)\s+)?(?:([^\W\d]\w*)\s*(?:\.|::|->)\s*)?([^\W\d]\w+)"
    r"(\s*\(|\s*(?:\.|::)(?!\s*\w))?"
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A named definition of a file.

    Its name is in ``row`` (from 0), and ``quoted`` are the rows that quote it, of which ``signature`` say how it is
    used. ``parent`` is the row of the class that it is a member of, -1 for none.
    """

    name: str
    kind: Kind
    row: int
    quoted: tuple[int, ...]
    parent: int = -1
    signature: tuple[int, ...] = ()


@dataclass(slots=True)
class _Found:
    """A definition as the query found it: its name is in ``row``, and its signature ends at row ``signature``.

    ``members`` are the definitions directly in it, and ``parent`` is as in a definition.
    """

    name: str
    kind: Kind
    span: tuple[int, int]
    first: int
    row: int
    signature: int
    last: int
    parent: int = -1
    members: list["_Found"] = field(default_factory=list)


def definitions(text: str, language: Language) -> tuple[Definition, ...]:
    """The definitions of a file that can be named from outside, so none that is local to a function.

    Empty for a language without a query.
    """
    if not language.definitions:
        return ()
    lines = text.split("\n")
    found, documentation = _find(text.encode(), language)
    found.sort(key=lambda one: (one.span[0], -one.span[1]))
    outer: list[_Found] = []
    named: list[_Found] = []
    for one in found:
        while outer and outer[-1].span[1] <= one.span[0]:
            outer.pop()
        if any(other.kind not in _OPEN for other in outer):
            continue
        if outer:
            outer[-1].members.append(one)
            one.parent = outer[-1].row if outer[-1].kind == "class" else -1
        named.append(one)
        outer.append(one)
    hidden = {row for first, last in documentation for row in range(first + _DOCUMENTATION_ROWS, last + 1)}
    return tuple(
        Definition(one.name, one.kind, one.row, _quoted(one, hidden, lines), one.parent, _signature(one))
        for one in named
    )


def quote(lines: Sequence[str], definition: Definition) -> str:
    """The text that quotes a definition: its rows, for a member after the first row of its class."""
    rows = [definition.parent, *definition.quoted] if definition.parent >= 0 else list(definition.quoted)
    indent = min((len(lines[row]) - len(lines[row].lstrip()) for row in rows if lines[row].strip()), default=0)
    return "".join(f"{lines[row][indent:].rstrip()}\n" for row in rows)


def outline(lines: Sequence[str], members: Sequence[Definition]) -> str:
    """The text that says how some definitions are used: the rows of their signatures."""
    rows = sorted({row for one in members for row in one.signature})[:_OUTLINE_ROWS]
    return "".join(f"{lines[row].rstrip()}\n" for row in rows)


def _signature(one: _Found) -> tuple[int, ...]:
    last = one.signature if one.kind == "function" else one.first
    return tuple(range(one.row, max(min(last, one.row + _SIGNATURE_ROWS - 1), one.row) + 1))


def _quoted(one: _Found, hidden: set[int], lines: Sequence[str]) -> tuple[int, ...]:
    """The rows that quote a definition; for a class its own rows and its members' signatures."""
    left_out = set(hidden)
    for member in one.members:
        constructor = member.name in _CONSTRUCTORS or member.name == one.name
        signature = member.signature + (_CONSTRUCTOR_ROWS if constructor else 0)
        left_out.update(range(signature + 1, member.last + 1))
    limit = {"function": _FUNCTION_ROWS, "class": _CLASS_ROWS, "value": _VALUE_ROWS, "module": _CLASS_ROWS}[one.kind]
    limit = max(limit, min(one.signature - one.first + 1, _CLASS_ROWS))
    rows = [row for row in range(one.first, one.last + 1) if row not in left_out and lines[row].strip()]
    return (*_comment_above(one.first, lines), *rows[:limit])


def _comment_above(first: int, lines: Sequence[str]) -> Iterable[int]:
    """The first rows of the comment directly above a definition."""
    start = first
    while start > 0 and lines[start - 1].lstrip().startswith(_COMMENT_STARTS):
        start -= 1
    return range(start, min(first, start + _DOCUMENTATION_ROWS))


def _find(source: bytes, language: Language) -> tuple[list[_Found], list[tuple[int, int]]]:
    """All definitions, and the first and last row of every documentation text."""
    root = language.parser().parse(source).root_node
    found: dict[tuple[str, int], _Found] = {}
    documentation = []
    for _, captures in matched(_query(language), root):
        if "doc" in captures:
            documentation.append((captures["doc"][0].start_point.row, captures["doc"][0].end_point.row))
            continue
        kind = next(kind for kind in KINDS if kind in captures)
        one = _found(kind, captures)
        # The patterns overlap (a constant may be a function); the first match of a definition counts.
        found.setdefault((one.name, one.first), one)
    return list(found.values()), documentation


def _found(kind: Kind, captures: dict[str, list[Node]]) -> _Found:
    node, name = captures[kind][0], captures["name"][0]
    while node.parent is not None and node.parent.type in _WRAPPERS:
        node = node.parent
    first, last = node.start_point.row, node.end_point.row
    if last > first and node.end_point.column == 0:  # some grammars include the line's end
        last -= 1
    before_body = captures["body"][0].prev_sibling if "body" in captures else None
    signature = before_body.end_point.row if before_body is not None else last
    span = node.start_byte, node.end_byte
    return _Found((name.text or b"").decode(), kind, span, first, name.start_point.row, signature, last)


@cache
def _query(language: Language) -> Query:
    folder = resources.files("lacuna_model.languages").joinpath("queries")
    text = "".join(folder.joinpath(f"{name}.scm").read_text("utf-8") for name in language.definitions)
    return Query(language.grammar(), text)


@dataclass(frozen=True)
class CursorRows:
    """Where somebody types: behind ``head`` in ``row`` (from 0) of the file ``path``, whose rows are ``lines``."""

    path: str
    language: str
    lines: list[str]
    row: int
    head: str

    @classmethod
    def at(cls, place: int, text: bytes, path: str, language: str) -> "CursorRows":
        """The cursor at an offset of a text.

        Of a long text, rows that are far from both its beginning and the cursor are empty, and those far below are
        left out: what is read does not grow with it.
        """
        above = plain(text[:place].decode(errors="ignore")).split("\n")
        rows = plain(text.decode()).split("\n")
        row = len(above) - 1
        between = max(row - 2 * _FAR, 0)
        near = [*rows[: min(row, _FAR)], *[""] * between, *rows[min(row, _FAR) + between : row + _FAR]]
        return cls(path, language, near, row, above[-1])

    @cached_property
    def imports(self) -> dict[str, Import]:
        """The imports of the file."""
        return imports("\n".join(filter(None, self.lines)), self.language)

    @property
    def view(self) -> list[str]:
        """The rows that the model reads anyway, since they are near."""
        return self.around(ROWS_ABOVE, ROWS_BELOW)

    def around(self, above: int, below: int) -> list[str]:
        """Some rows above, the cursor's and some below."""
        return self.lines[max(0, self.row - above) : self.row + below + 1]

    def typed(self, above: int) -> list[str]:
        """Some rows above, and what stands before the cursor in its own."""
        return [*self.lines[max(0, self.row - above) : self.row], self.head]


@dataclass(frozen=True, slots=True)
class Reference:
    """A use of a name in ``row`` (from 0).

    ``qualifier`` is the name before its dot, "" for none. ``weight`` in 0..1 falls with the distance from the cursor.
    ``telling``: the name looks like that of a definition, since it is called or spelt like a type. ``opened``: behind
    it stands a dot and no name yet.
    """

    name: str
    qualifier: str
    row: int
    weight: float
    telling: bool
    opened: bool = False


def references(lines: list[str], row: int, language: str) -> list[Reference]:
    """The names used around ``row``, each once at its nearest use, the nearest first.

    Above the cursor, the block around it is searched, from its first line at the left margin.
    """
    first, last = _extent(lines, row)
    code = without_texts("\n".join(lines[first:last]), language).split("\n")
    found: dict[tuple[str, str], Reference] = {}
    for number in (*range(row, first - 1, -1), *range(row + 1, last)):
        weight = 0.5 ** (abs(row - number) * (1 if number <= row else 2) / _HALF_WEIGHT_ROWS)
        for match in _NAME.finditer(code[number - first]):
            defined, qualifier, name, call = match.groups(default="")
            if defined:
                continue
            telling, opened = call.endswith("(") or name[0].isupper(), call.endswith((".", ":"))
            _note(found, Reference(name, qualifier, number, weight, telling, opened))
            if qualifier:
                _note(found, Reference(qualifier, "", number, weight, qualifier[0].isupper()))
    return list(found.values())


def without_texts(text: str, language: str) -> str:
    """The text without strings and comments; every row keeps its number."""
    pattern = _HASH_TEXT if language == "python" else _SLASH_TEXT
    return pattern.sub(lambda match: "\n" * match[0].count("\n"), text)


def _note(found: dict[tuple[str, str], Reference], use: Reference) -> None:
    """Keep the nearest use of a name; it is telling if any of its uses is, and opened likewise."""
    known = found.setdefault((use.qualifier, use.name), use)
    telling, opened = known.telling or use.telling, known.opened or use.opened
    found[use.qualifier, use.name] = replace(known, telling=telling, opened=opened)


def _extent(lines: list[str], row: int) -> tuple[int, int]:
    """The rows of the block around ``row``: the first, and the one after the last."""
    first = row
    while first > max(0, row - ROWS_ABOVE) and (first == row or not _begins_block(lines[first])):
        first -= 1
    last = row + 1
    while last < min(len(lines), row + ROWS_BELOW + 1) and not _begins_block(lines[last]):
        last += 1
    return first, last


def _begins_block(line: str) -> bool:
    return bool(line) and not line[0].isspace() and line[0] not in ")]}#/*@"
