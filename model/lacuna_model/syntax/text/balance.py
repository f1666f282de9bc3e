"""The brackets and blocks that a text leaves open, and what closes them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product, zip_longest
from typing import NamedTuple

from lacuna_model.languages.language import Lexicon
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.text.literals import Literals, find_literals
from lacuna_model.syntax.text.scan import FAR, TOP_LEVEL, Bracket, Scan, scan, scan_brackets, shared
from lacuna_model.syntax.text.suffix_text import RightSide, right_side

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


# Bytes that are scanned token by token; in text further away only brackets are counted.
WINDOW = 6000
MAX_BRACKETS = 500  # brackets on one side of a gap; real files have up to 40


class OpenBrackets(NamedTuple):
    """The brackets that a gap leaves open, outermost first, and how many of them were open before it."""

    stack: tuple[Bracket, ...] = ()
    kept: int = 0


class Sides:
    """The surroundings of a gap: the ``text`` before it, the ``left`` scan of that, and the ``right`` side."""

    def __init__(self, text: bytes, left: Scan, right: RightSide) -> None:
        self.text, self.left, self.right = text, left, right

    @cached_property
    def targets(self) -> Sequence[OpenBrackets]:
        """The brackets that the gap may leave open, the likeliest first.

        All closers have their openers then; or the first one, at the beginning of a line, belongs to the bracket of its
        kind in the same column. Where the text after the gap goes on too far, it may close all.
        """
        stack, lacking = self.left.stack, self.right.unmatched
        wanted = lacking[::-1]
        kept = shared(stack, wanted)
        found = [OpenBrackets((*stack[:kept], *wanted[kept:]), kept)]
        if not self.right.whole:
            found.insert(0, OpenBrackets(stack, len(stack)))
        if lacking and lacking[0].leads:
            first = lacking[0].closer, lacking[0].column
            alike = (end for end in range(len(stack), 0, -1) if (stack[end - 1].closer, stack[end - 1].column) == first)
            if end := next(alike, 0):
                found.insert(0 if lacking[0].column else 1, OpenBrackets(stack[:end], end))
        return list(dict.fromkeys(found))

    @property
    def target(self) -> OpenBrackets:
        """The brackets that the gap most likely leaves open."""
        return self.targets[0]

    @cached_property
    def below(self) -> "Sides":
        """The sides without the rest of the line after the gap."""
        return Sides(self.text, self.left, self.right.below)


def sides_of(before: bytes, after: bytes, lexicon: Lexicon) -> Sides:
    """Return the sides of a gap between two texts. Raises UnparsableError for too many brackets."""
    right = right_side(after, lexicon)
    _limit(right.unmatched)
    return Sides(before, scan_left(before, lexicon), right)


class Balance:
    """The sides of the gaps of a text, each as if the others were empty."""

    def __init__(self, text: bytes, gaps: Sequence[tuple[int, int]], lexicon: Lexicon) -> None:
        bounds = [0, *(offset for gap in gaps for offset in gap), len(text)]
        self._pieces = [text[bounds[i] : bounds[i + 1]] for i in range(0, len(bounds), 2)]
        self._lexicon = lexicon
        self._found: dict[int, Sides] = {}

    def sides(self, gap: int) -> Sides:
        """The sides of one gap."""
        if gap not in self._found:
            before, after = b"".join(self._pieces[: gap + 1]), b"".join(self._pieces[gap + 1 :])
            self._found[gap] = sides_of(before, after, self._lexicon)
        return self._found[gap]


def scan_left(text: bytes, lexicon: Lexicon) -> Scan:
    """The state at a gap, from the text before it. Raises UnparsableError for too many brackets."""
    literals = find_literals(text, lexicon)
    start = Scan(fresh=True)
    near = max(len(text) - WINDOW, 0)
    begin = _last_statement(text, near, literals) if lexicon.columns else _line_outside(text, near, literals)
    if begin and not lexicon.columns:  # where blocks are columns, the next top-level statement closes every one
        first = _line_outside(text, max(begin - FAR, 0), literals)
        start = replace(start, stack=scan_brackets(text[first:begin], lexicon).stack)
    _limit(start.stack)
    found = scan(text[begin:], lexicon, start)
    _limit(found.stack)
    return replace(found, inside=literals.inside)


def _limit(brackets: Sequence[Bracket]) -> None:
    """Raise UnparsableError for more brackets than any file has: to close them all is tried many times."""
    if len(brackets) > MAX_BRACKETS:
        raise UnparsableError(f"over {MAX_BRACKETS} brackets are open around the gap")


def _last_statement(text: bytes, near: int, literals: Literals) -> int:
    """Where the last top-level statement starts; in one that is very long, where a line does."""
    starts = [match.end() for match in TOP_LEVEL.finditer(text, near) if not literals.hold(match.end())]
    return starts[-1] if starts else _line_outside(text, near, literals)


def _line_outside(text: bytes, offset: int, literals: Literals) -> int:
    """The first start of a line from an offset on that is not inside a string."""
    if offset == 0:
        return 0
    lines = (match.end() for match in re.finditer(rb"\n", text[offset:]))
    return next((offset + place for place in lines if not literals.hold(offset + place)), len(text))
