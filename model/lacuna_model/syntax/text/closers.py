"""Brackets of blocks and ``#if`` that are open at a line, and the texts that close them after it."""

import re
from collections.abc import Iterator, Sequence
from itertools import product, zip_longest
from typing import NamedTuple

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.scan import Bracket

MAX_OPEN = 8  # brackets
ENDIF = b"\n#endif"
CONDITIONAL = re.compile(rb"^[ \t]*#[ \t]*(if|endif)", re.MULTILINE)
DECLARATIONS = frozenset({b"struct", b"class", b"enum", b"union", b"typedef"})
BEFORE_VALUES = frozenset({b"=", b"(", b",", b"[", b"return", b":=", b"=>", b":"})


class GapLine(NamedTuple):
    """The line with the gap: the text above, the parts of the line before and after the gap, and the text below."""

    above: bytes
    head: bytes
    tail: bytes
    below: bytes


def count_open(text: bytes) -> tuple[int, int]:
    """The number of ``#if`` that are open at the end of a text, and of its ``#endif`` without an ``#if``."""
    opened = lacking = 0
    for match in CONDITIONAL.finditer(text):
        if match.group(1) == b"if":
            opened += 1
        elif opened:
            opened -= 1
        else:
            lacking += 1
    return opened, lacking


def line_of(text: bytes, start: int, end: int) -> GapLine:
    """The line with the gap from ``start`` to ``end``."""
    begin, stop = text.rfind(b"\n", 0, start) + 1, text.find(b"\n", end)
    stop = len(text) if stop < 0 else stop
    return GapLine(text[:begin], text[begin:start], text[end:stop], text[stop:])


def ways(brackets: Sequence[Bracket], conditionals: bytes, lexicon: Lexicon) -> Iterator[list[bytes]]:
    """Lists of the closers, innermost first, each with a possible end of its statement; the likeliest list first."""
    inwards = list(reversed(brackets))
    ends = [_ends(bracket, outer, lexicon) for bracket, outer in zip_longest(inwards, inwards[1:])]
    ways = sorted(product(*(range(len(own)) for own in ends)), key=sum)
    for way in ways:
        lines = [
            b"\n" + b" " * max(bracket.column, 0) + bracket.closer + own[choice]
            for bracket, own, choice in zip(inwards, ends, way, strict=True)
        ]
        yield [*lines, conditionals] if conditionals else lines
        if conditionals and lines:
            yield [conditionals + lines[0], *lines[1:]]


def _ends(bracket: Bracket, outer: Bracket | None, lexicon: Lexicon) -> list[bytes]:
    """Texts that may follow a closer, likeliest first: nothing, the end of a statement or the body of a header.

    A block that demands more behind it, as that of a ``try`` does, is followed by that.
    """
    first, before = bracket.words
    if bracket.closer == b"}" and (tail := dict(lexicon.tails).get(before)) is not None:
        return [tail, b""]
    if bracket.closer == b"}":
        ends_statement = before in BEFORE_VALUES or first in DECLARATIONS
    else:
        ends_statement = outer is None or outer.closer == b"}"
    ends = [b"", lexicon.terminator, lexicon.body]
    return list(dict.fromkeys([ends[1], ends[0], ends[2]] if ends_statement else ends))
