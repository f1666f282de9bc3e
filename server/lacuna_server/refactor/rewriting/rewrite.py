"""A template, the rewrite of a place by it, and excerpts: a file cut down to what decides how a place is read.

An excerpt has the first nodes of the file, the node that a place is in, and those beside it. What is asked of each
place then costs as much in a long file as in a short one.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec
from tree_sitter import Node, Tree

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.region import regex_grammar
from lacuna_server.refactor.places.matching import Span
from lacuna_server.refactor.places.pattern import VARIABLE
from lacuna_server.refactor.places.source import Source

TOKEN = re.compile(rf"<<fill(?::(?P<options>.*?))?>>|{VARIABLE.pattern}", re.DOTALL)
_IN_NAME = re.compile("[A-Z0-9_]")
OPTIONS = "line, lines=N, tokens=N, regex=EXPRESSION"
MAX_HOLE_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class MetaVariable:
    """A metavariable. With ``many`` (``$$$NAME``) it matches any number of nodes, with their separators."""

    name: str
    many: bool


Piece: TypeAlias = str | MetaVariable | Region


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template; ``text`` is as it was written, and ``pattern`` the pattern that it belongs to, if any.

    If the template equals its pattern except for text inserted after a metavariable, ``after`` names that metavariable
    and ``inserted`` is the text. The place then keeps its own layout.
    """

    parts: tuple[Piece, ...]
    after: str = ""
    inserted: tuple[Piece, ...] = ()
    text: str = ""
    pattern: str = ""

    @property
    def begins_line(self) -> bool:
        """Whether the template begins with a line end."""
        return bool(self.parts) and isinstance(self.parts[0], str) and self.parts[0].startswith("\n")

    @property
    def names(self) -> frozenset[str]:
        """The names of the metavariables that the template uses."""
        return frozenset(part.name for part in self.parts if isinstance(part, MetaVariable))

    @property
    def holes(self) -> tuple[Span, ...]:
        """The spans of its holes in bytes of its text."""
        found = (token for token in TOKEN.finditer(self.text) if token[0].startswith("<<"))
        return tuple((len(self.text[: one.start()].encode()), len(self.text[: one.end()].encode())) for one in found)


def parse_template(text: str, known: frozenset[str]) -> Template:
    """Parses a template. Raises RequestError for an invalid hole and for a metavariable that is not ``known``."""
    parts: list[Piece] = []
    position = 0
    for token in TOKEN.finditer(text):
        parts.append(text[position : token.start()])
        position = token.end()
        parts.append(_hole(token["options"] or "") if token[0].startswith("<<") else _variable(token, known))
    parts.append(text[position:])
    return Template(tuple(part for part in parts if part != ""), text=text)


def parse_rewrite(pattern: str, text: str, known: frozenset[str]) -> Template:
    """Parses the template of a pattern, and finds the text that it inserts into the pattern. Raises RequestError."""
    template = replace(parse_template(text, known), pattern=pattern)
    variables = list(VARIABLE.finditer(pattern))
    names = Counter(variable[2] for variable in variables)
    # Of a metavariable that stands there several times, a place knows one span.
    for variable in reversed([one for one in variables if names[one[2]] == 1]):
        head, tail = pattern[: variable.end()], pattern[variable.end() :]
        named = text.startswith(head) and not _IN_NAME.match(text, len(head))
        if named and len(text) > len(pattern) and text.endswith(tail):
            inserted = parse_template(text[len(head) : len(text) - len(tail)], known).parts
            return replace(template, after=variable[2], inserted=inserted)
    return template


def parse_parts(text: str) -> tuple[str | Region, ...]:
    """Parses text with holes and without metavariables. Raises RequestError."""
    return tuple(part for part in parse_template(text, frozenset()).parts if not isinstance(part, MetaVariable))


def _variable(token: re.Match[str], known: frozenset[str]) -> MetaVariable:
    sigil, name = token.groups()[-2:]
    if name not in known:
        bound = ", ".join(f"${name}" for name in sorted(known)) or "none"
        raise RequestError(f"the template uses {sigil}{name}, which nothing binds; bound: {bound}")
    return MetaVariable(name, sigil == "$$$")


def _hole(options: str) -> Region:
    hole = Region(0, 0)
    while options:
        if options.startswith("regex="):
            expression = options.removeprefix("regex=")
            regex_grammar(expression)  # an invalid one is refused here, before a model is loaded
            return msgspec.structs.replace(hole, regex=expression)
        option, _, options = options.partition(":")
        hole = _with_option(hole, option)
    return hole


def _with_option(hole: Region, option: str) -> Region:
    match option.split("=", 1):
        case ["line"]:
            return msgspec.structs.replace(hole, single_line=True)
        case ["lines", count]:
            return msgspec.structs.replace(hole, max_lines=_number(option, count))
        case ["tokens", count]:
            return msgspec.structs.replace(hole, max_tokens=_number(option, count))
    raise RequestError(f"a hole has no option {option!r}; known: {OPTIONS}")


def _number(option: str, digits: str) -> int:
    if not digits.isdecimal() or len(digits) > len(str(MAX_HOLE_TOKENS)) or not 1 <= int(digits) <= MAX_HOLE_TOKENS:
        raise RequestError(f"{option!r} of a hole is not a number from 1 to {MAX_HOLE_TOKENS}")
    return int(digits)


# A hole is a region whose offsets are not known yet.
Part: TypeAlias = str | Region
TOO_DEEP = "the code has too many nodes within or beside each other to be searched; not changed"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Replaces the bytes ``start``..``end`` of a file by ``parts``: text and holes.

    A ``support`` rewrite, such as an import, is useful only together with another one of its file.
    """

    start: int
    end: int
    parts: tuple[Part, ...]
    label: str
    support: bool = False
    instruction: str = ""

    @property
    def holes(self) -> tuple[Region, ...]:
        """The holes in order."""
        return tuple(part for part in self.parts if isinstance(part, Region))

    def moved(self, by: int) -> "Rewrite":
        """Returns the rewrite in a text that has so many more bytes before it."""
        return replace(self, start=self.start + by, end=self.end + by)

    def filled(self, fills: Sequence[str]) -> str:
        """Returns the new text, with one fill for every hole."""
        remaining = iter(fills)
        return "".join(part if isinstance(part, str) else next(remaining) for part in self.parts)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A place (byte offset ``at``) that seems to match but is not changed, and the reason."""

    at: int
    reason: str

    def moved(self, by: int) -> "LeftOut":
        """Returns the place in a text that has so many more bytes before it."""
        return replace(self, at=self.at + by)


def disjoint(source: Source, rewrites: Iterable[Rewrite]) -> tuple[list[Rewrite], list[str]]:
    """Returns the rewrites in order without those that overlap an earlier or outer one, and a line about each of these.

    An insertion may directly precede a place. Of two insertions at one offset the second is left out, because their
    order would be arbitrary.
    """
    chosen: list[Rewrite] = []
    refused: list[str] = []
    for rewrite in sorted(rewrites, key=lambda rewrite: (rewrite.start, rewrite.start < rewrite.end, -rewrite.end)):
        last = chosen[-1] if chosen else None
        if last is None or (rewrite.start >= last.end and (rewrite.start, rewrite.end) != (last.start, last.end)):
            chosen.append(rewrite)
        elif (rewrite.start, rewrite.end, rewrite.parts) != (last.start, last.end, last.parts):
            line, column = source.position(rewrite.start)
            outer = source.position(last.start)
            refused.append(f"{source.path}:{line}:{column}: overlaps the place at {outer[0]}:{outer[1]}")
    return chosen, refused


def first_line(text: str, width: int = 60) -> str:
    """Returns the first line of a text, shortened to ``width`` characters, as a label for a place."""
    line = text.strip().split("\n", 1)[0].rstrip()
    return line if len(line) <= width and line == text.strip() else f"{line[: width - 1]}…"


# Of the nodes of a file, so many at its beginning stay in an excerpt, and so many beside a place, in groups of so many,
# because the places of a group share an excerpt.
HEAD, BESIDE, GROUP = 5, 3, 6


class Excerpts:
    """The excerpts of one file. Raises UnparsableError where the file cannot be parsed."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._root = source.tree.root_node
        self._nodes = self._root.named_children
        self._kept, self._excerpt = (0, 0, len(source.data)), source

    def around(self, start: int, end: int) -> tuple[Source, int]:
        """Returns the excerpt for the bytes ``start``..``end``, and how many bytes before them are not in it.

        It is the file itself where it is short, or where the place would be read otherwise in an excerpt.
        """
        first = bisect_right(self._nodes, start, key=lambda node: node.end_byte)
        last = bisect_left(self._nodes, end, key=lambda node: node.start_byte)
        begun, ended = max(first - first % GROUP - BESIDE, HEAD), last - last % GROUP + GROUP + BESIDE
        if begun == HEAD and ended >= len(self._nodes):
            return self._source, 0
        data, (head, rest) = self._source.data, (self._nodes[index].start_byte for index in (HEAD, begun))
        kept = head, rest, self._nodes[ended].start_byte if ended < len(self._nodes) else len(data)
        if kept != self._kept:
            self._kept = kept
            self._excerpt = replace(self._source, text=(data[:head] + data[rest : kept[2]]).decode())
        moved = rest - head
        try:
            same = self._is_read_alike(self._excerpt.tree, start, end, moved)
        except UnparsableError:
            same = False
        return (self._excerpt, moved) if same else (self._source, 0)

    def _is_read_alike(self, tree: Tree, start: int, end: int, moved: int) -> bool:
        """Returns whether the nodes around the place are of the same types in the excerpt, and it has no new error."""
        if tree.root_node.has_error > self._root.has_error:
            return False
        return _types(self._root, start, end) == _types(tree.root_node, start - moved, end - moved)


def _types(root: Node, start: int, end: int) -> list[str]:
    """Returns the types of the nodes around some bytes, the inmost first."""
    found, node = list[str](), root.descendant_for_byte_range(start, end)
    while node is not None:
        found.append(node.type)
        node = node.parent
    return found
