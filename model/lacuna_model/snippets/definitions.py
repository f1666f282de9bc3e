"""Finds the definitions of a file with tree-sitter; the cursor, and the names that the code around it refers to."""

import re
from collections.abc import Sequence, Set
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


@dataclass(slots=True)
class Definition:
    """A named definition of a file, in the rows ``first`` to ``last`` (from 0), with its name in ``row``.

    Its signature ends in the row ``head``. ``parent`` is the row of the class that it is a member of, -1 for none, and
    ``members`` are the definitions directly in it. The rows of documentation that are ``hidden`` in the file are not
    quoted.
    """

    name: str
    kind: Kind
    row: int
    first: int
    last: int
    head: int
    hidden: Set[int] = field(repr=False)
    parent: int = -1
    members: list["Definition"] = field(default_factory=list)

    @property
    def signature(self) -> range:
        """The rows that say how it is used."""
        last = min(self.head if self.kind == "function" else self.first, self.row + _SIGNATURE_ROWS - 1)
        return range(self.row, max(last, self.row) + 1)


def definitions(text: str, language: Language) -> tuple[Definition, ...]:
    """The definitions of a file that can be named from outside, so none that is local to a function.

    Empty for a language without a query.
    """
    if not language.definitions:
        return ()
    found, hidden = dict[tuple[str, int], tuple[Node, Definition]](), set[int]()
    for _, captures in matched(_query(language), language.parser().parse(text.encode()).root_node):
        if "doc" in captures:
            first, last = _rows(captures["doc"][0])
            hidden.update(range(first + _DOCUMENTATION_ROWS, last + 1))
            continue
        kind = next(kind for kind in KINDS if kind in captures)
        node, name = captures[kind][0], captures["name"][0]
        while node.parent is not None and node.parent.type in _WRAPPERS:
            node = node.parent
        first, last = _rows(node)
        if last > first and node.end_point.column == 0:  # some grammars include the line's end
            last -= 1
        above = captures["body"][0].prev_sibling if "body" in captures else None
        head = above.end_point.row if above is not None else last
        one = Definition((name.text or b"").decode(), kind, name.start_point.row, first, last, head, hidden)
        # The patterns overlap (a constant may be a function); the first match of a definition counts.
        found.setdefault((one.name, first), (node, one))
    outer, named = list[tuple[Node, Definition]](), list[Definition]()
    for node, one in sorted(found.values(), key=lambda it: (it[0].start_byte, -it[0].end_byte)):
        while outer and outer[-1][0].end_byte <= node.start_byte:
            outer.pop()
        if any(around.kind not in _OPEN for _, around in outer):
            continue
        if outer:
            around = outer[-1][1]
            around.members.append(one)
            one.parent = around.row if around.kind == "class" else -1
        named.append(one)
        outer.append((node, one))
    return tuple(named)


def quote(lines: Sequence[str], one: Definition) -> str:
    """The text that quotes a definition: the comment above and its rows, for a member after the first row of its class.

    Of a class, these are its own rows and its members' signatures.
    """
    left_out = set(one.hidden)
    for member in one.members:
        constructor = member.name in _CONSTRUCTORS or member.name == one.name
        left_out.update(range(member.head + (_CONSTRUCTOR_ROWS if constructor else 0) + 1, member.last + 1))
    limit = {"function": _FUNCTION_ROWS, "class": _CLASS_ROWS, "value": _VALUE_ROWS, "module": _CLASS_ROWS}[one.kind]
    limit = max(limit, min(one.head - one.first + 1, _CLASS_ROWS))
    own = [row for row in range(one.first, one.last + 1) if row not in left_out and lines[row].strip()]
    start = one.first
    while start > 0 and lines[start - 1].lstrip().startswith(_COMMENT_STARTS):
        start -= 1
    comment = range(start, min(one.first, start + _DOCUMENTATION_ROWS))
    rows = [*([one.parent] if one.parent >= 0 else []), *comment, *own[:limit]]
    indent = min((len(lines[row]) - len(lines[row].lstrip()) for row in rows if lines[row].strip()), default=0)
    return "".join(f"{lines[row][indent:].rstrip()}\n" for row in rows)


def outline(lines: Sequence[str], members: Sequence[Definition]) -> str:
    """The text that says how some definitions are used: the rows of their signatures."""
    rows = sorted({row for one in members for row in one.signature})[:_OUTLINE_ROWS]
    return "".join(f"{lines[row].rstrip()}\n" for row in rows)


def _rows(node: Node) -> tuple[int, int]:
    return node.start_point.row, node.end_point.row


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
