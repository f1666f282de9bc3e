"""A template, and the rewrite of a place by it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TypeAlias

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_model.syntax.region import regex_grammar
from lacuna_server.refactor.places.matching import Span
from lacuna_server.refactor.places.pattern import VARIABLE
from lacuna_server.refactor.places.source import Source

TOKEN = re.compile(rf"<<fill(?::(?P<options>.*?))?>>|{VARIABLE.pattern}", re.DOTALL)
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
    for variable in reversed(list(VARIABLE.finditer(pattern))):
        head, tail = pattern[: variable.end()], pattern[variable.end() :]
        if len(text) > len(pattern) and text.startswith(head) and text.endswith(tail):
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
        return "".join(self._texts(fills))

    def spans(self, fills: Sequence[str]) -> list[tuple[int, int]]:
        """Returns the byte range of every fill in the new text."""
        ends = list(accumulate((len(text.encode()) for text in self._texts(fills)), initial=0))
        return [span for part, span in zip(self.parts, pairwise(ends), strict=True) if isinstance(part, Region)]

    def _texts(self, fills: Sequence[str]) -> list[str]:
        remaining = iter(fills)
        return [part if isinstance(part, str) else next(remaining) for part in self.parts]


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
