"""Templates: text, the pattern's metavariables, and holes that the model fills.

``<<fill>>`` is a hole. Each option follows a colon, a regular expression comes last: ``<<fill:line>>``,
``<<fill:lines=4>>``, ``<<fill:tokens=20>>``, ``<<fill:line:regex=[a-z]+>>``. Write ``\\x3e`` for a ``>`` in it.
"""

import re
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_model.syntax.region.byte_grammar import regex_grammar
from lacuna_server.refactor.places.matching import Span
from lacuna_server.refactor.places.pattern import VARIABLE

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
