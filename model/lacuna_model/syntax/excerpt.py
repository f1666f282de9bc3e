"""The part of a large text in which its fills are checked: whole statements of the top level around the gaps.

What stands above is scanned for the strings and comments that it leaves open, piece by piece, and each piece once. So
what a fill costs does not grow with the file.
"""

import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain
from typing import NamedTuple

import msgspec

from lacuna_model.core import pieces, work
from lacuna_model.core.params import Region
from lacuna_model.languages.language import Language, Lexicon
from lacuna_model.syntax.scan import left_at, literal_pattern
from lacuna_model.syntax.sides import Literals

# Bytes of a text that is checked whole, and of the text on each side of the gaps that is checked in a larger one.
LARGE, NEAR = 1 << 16, 1 << 14
# Bytes below the gaps in which a statement is as deep in brackets as the one above: where none is, one was left open.
FAR, FARTHEST = 1 << 16, 1 << 18
# What stands at the left edge below a blank line, or below the end of a block, begins a statement of the top level.
_STATEMENT = re.compile(
    rb"^(?:[ \t\r]*|\}[;,)]*[ \t\r]*)\n(?=[^\s()\[\]{}\"'`#<=>|.])(?!(?:end|else|done|then|do)\b)", re.MULTILINE
)
_CONDITIONAL = rb"|(?<![^\n])[ \t]*#[ \t]*(?:if|endif)"
# In these, what the first line says holds for all others, or a strict parser reads the whole.
_WHOLE = frozenset({"html", "php", "json", "toml", "yaml"})
_REMEMBERED = 4096
# The seconds between two pauses of a scan.
PAUSE_S = 0.02


class Border(NamedTuple):
    """The ``offset`` of a statement in a piece, how ``deep`` in brackets it is, and the least depth on both sides."""

    offset: int
    deep: int
    before: int
    behind: int


class Piece(NamedTuple):
    """A piece of a text: its ``size``, the closer of the string or comment that is open at its end, its statements.

    ``deep`` is how deep its end is in brackets, ``least`` the least depth in it, counted as from its beginning.
    """

    size: int
    inside: bytes
    borders: tuple[Border, ...] = ()
    deep: int = 0
    least: int = 0


Pieces = Sequence[tuple[int, Piece]]  # each with its offset


def excerpt(text: bytes, regions: Sequence[Region], language: Language) -> tuple[bytes, Sequence[Region]]:
    """Return the part of a text that is checked, and its ``regions`` (byte offsets) in it; of a small text all."""
    if _is_checked_whole(text, language):
        return text, regions
    start, end = regions[0].start, regions[-1].end
    above, between, below = map(list, _parts(text, regions, language.lexicon))
    begin, stop = _ends(above, sum(piece.deep for _, piece in between), below, start)
    stop = len(text) if stop is None else end + stop
    moved = [msgspec.structs.replace(one, start=one.start - begin, end=one.end - begin) for one in regions]
    return text[begin:stop], moved


def scanning(
    text: bytes, regions: Sequence[Region], language: Language | None, *, pause_s: float = PAUSE_S
) -> Iterator[None]:
    """Scan what :func:`excerpt` needs of a text, with a pause every ``pause_s`` seconds; it then has it at once."""
    if language is None or _is_checked_whole(text, language):
        return
    began = time.monotonic()
    for _ in chain.from_iterable(_parts(text, regions, language.lexicon)):
        if time.monotonic() - began >= pause_s:
            yield
            began = time.monotonic()


def _is_checked_whole(text: bytes, language: Language) -> bool:
    return len(text) <= LARGE or language.name in _WHOLE


def _parts(text: bytes, regions: Sequence[Region], lexicon: Lexicon) -> Iterator[Iterator[tuple[int, Piece]]]:
    """The pieces above the gaps, between and below, each with its offset there; they are scanned in this order."""
    start, end, inside = regions[0].start, regions[-1].end, b""

    def scanned(part: bytes) -> Iterator[tuple[int, Piece]]:
        nonlocal inside
        place = 0
        for one in pieces.cut(part):
            piece = _piece(one, lexicon, inside)
            yield place, piece
            place, inside = place + piece.size, piece.inside

    yield from map(scanned, (text[:start], text[start:end], text[end : end + FARTHEST]))


def _ends(above: Pieces, between: int, below: Pieces, size: int) -> tuple[int, int | None]:
    """Where the excerpt begins in the ``size`` bytes above the gaps, and ends below them; None: with the text.

    Both are as deep in brackets. Where nothing below is as deep as what is far enough above, a place nearby is as deep
    as something below; or else the brackets of the text do not tell, and any statement does.
    """
    begins = list[tuple[int, int]]()
    for place, deep in _begins(above, size):
        begins.append((place, deep))
        if place <= size - NEAR:
            break
    begin, base = begins[-1]
    stops = list[tuple[int, int]]()
    for place, deep in _stops(below, between):
        if place >= NEAR and deep <= base:
            return begin, place
        if place > FAR:
            break
        stops.append((place, deep))
    if levels := {deep for _, deep in begins} & {deep for _, deep in stops}:
        level = min(levels)
        places = [place for place, deep in stops if deep == level]
        begin = min(place for place, deep in begins if deep == level)
        return begin, next((place for place in places if place >= NEAR), places[-1])
    everywhere = (place + border.offset for place, piece in below for border in piece.borders)
    return begin, next((place for place in everywhere if place >= NEAR), None)


def _begins(above: Pieces, size: int) -> Iterator[tuple[int, int]]:
    """Where an excerpt may begin above the gaps, nearest first, and how deep that is, counted as from the gaps.

    Nothing behind such a place closes a bracket that is opened before it, or it is far away.
    """
    deep, least = 0, 0
    for place, piece in reversed(above):
        deep -= piece.deep
        if place < size - FARTHEST:
            least = deep + piece.least
        for border in reversed(piece.borders):
            if border.deep <= border.behind and deep + border.deep <= least:
                yield place + border.offset, deep + border.deep
        least = min(least, deep + piece.least)
    yield 0, deep


def _stops(below: Pieces, deep: int) -> Iterator[tuple[int, int]]:
    """Where an excerpt may end below gaps that hold ``deep`` brackets, nearest first, and how deep that is.

    All that is opened between is closed there.
    """
    least, end = deep, 0
    for place, piece in below:
        for border in piece.borders:
            if border.deep <= border.before and deep + border.deep <= least:
                yield place + border.offset, deep + border.deep
        deep, least, end = deep + piece.deep, min(least, deep + piece.least), place + piece.size
    if deep <= least:
        yield end, deep


@lru_cache(maxsize=_REMEMBERED)
def _piece(text: bytes, lexicon: Lexicon, inside: bytes) -> Piece:
    """A piece that begins ``inside`` a string or comment."""
    start = left_at(text, inside) if inside else 0
    if start is None:
        return Piece(len(text), inside)
    pattern, closers = _pattern(lexicon)
    openers = frozenset(pair[:1] for pair in lexicon.brackets)
    spans, places, depths, inside = list[tuple[int, int]](), [start], [0], b""
    for match in work.checked(pattern.finditer(text, start)):
        if kind := match.lastgroup:
            spans.append(match.span())
            is_note = kind.startswith("note") and match.end() == len(text)
            inside = closers[int(kind[4:])] if kind.startswith("open") else b"\n" if is_note else b""
        else:
            word = match.group()
            opens = word in openers or (word.endswith(b"if") and not word.endswith(b"endif"))
            places.append(match.end())
            depths.append(depths[-1] + (1 if opens else -1))
    before = [*accumulate(depths, min)]
    behind = [*accumulate(reversed(depths), min)][::-1]
    literals, borders = Literals(tuple(spans), inside), list[Border]()
    for statement in (match.end() for match in _STATEMENT.finditer(text, start)):
        if not literals.hold(statement):
            at = bisect_right(places, statement) - 1
            borders.append(Border(statement, depths[at], before[at], behind[at]))
    return Piece(len(text), inside, tuple(borders), depths[-1], before[-1])


@lru_cache(maxsize=32)
def _pattern(lexicon: Lexicon) -> tuple[re.Pattern[bytes], tuple[bytes, ...]]:
    """The pattern of literals, brackets and conditionals, and the closers of the literals."""
    literals, closers = literal_pattern(lexicon)
    brackets = b"|[%s]" % re.escape(b"".join(lexicon.brackets)) + _CONDITIONAL * lexicon.conditionals
    return re.compile(literals.pattern + brackets, re.DOTALL), closers
