"""Which brackets each gap must leave open so that all of them together balance.

With several gaps the brackets alone do not tell which gap closes what; the indentation of the lines behind each does.
Every gap takes over what the text up to it leaves open and has to bring it to what the text behind it needs, whatever
the others hold.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lacuna_model.syntax.conditionals import count_due, count_open
from lacuna_model.syntax.languages import Lexicon
from lacuna_model.syntax.literals import Literals, find_literals
from lacuna_model.syntax.right_side import RightSide
from lacuna_model.syntax.scan import FAR, TOP_LEVEL, UNKNOWN, Bracket, Scan, scan, scan_brackets

# Read token by token; what lies further away is read for its brackets alone.
WINDOW = 6000
COST_WRITTEN = 0.3  # a bracket that the gap would have to write
COST_COLUMN = 1.0  # a bracket or a line that stands where it does not belong
COST_TORN = 3.0  # a bracket that would stay without its other half


@dataclass(frozen=True, slots=True)
class Sides:
    """What a gap stands between: the text in front of it and that one's scan, what follows, and what it leaves open.

    ``conditionals`` are how many ``#if`` are open in front of it, and how many it leaves open.
    """

    text: bytes
    left: Scan
    right: RightSide
    target: tuple[Bracket, ...]
    conditionals: tuple[int, int] = (0, 0)


class Balance:
    """The sides of all gaps of a document, found from the first gap on as they are asked for."""

    def __init__(self, text: bytes, gaps: Sequence[tuple[int, int]], lexicon: Lexicon) -> None:
        self._text = text
        self._gaps = gaps
        self._lexicon = lexicon
        self._found: list[Sides] = []

    def sides(self, gap: int) -> Sides:
        """The sides of one gap."""
        while len(self._found) <= gap:
            index = len(self._found)
            last = index + 1 == len(self._gaps)
            since = self._gaps[index - 1][1] if index else 0
            start, end = self._gaps[index]
            until = len(self._text) if last else self._gaps[index + 1][0]
            left = scan_left(self._text[since:start], self._lexicon, self._found[-1] if index else None)
            right = RightSide(self._text[end:until], self._lexicon, left.inside, to_the_end=last)
            target = open_behind(left, right)
            self._found.append(Sides(self._text[:start], left, right, target, self._conditionals(index, since)))
        return self._found[gap]

    def _conditionals(self, gap: int, since: int) -> tuple[int, int]:
        if not self._lexicon.conditionals:
            return 0, 0
        before = self._found[-1].conditionals[1] if gap else 0
        borders = [*self._gaps[gap:], (len(self._text), 0)]
        pieces = [self._text[one[1] : other[0]] for one, other in pairwise(borders)]
        return count_open(self._text[since : self._gaps[gap][0]], before)[0], count_due(pieces)

    def ending(self, gap: int) -> Sides:
        """The sides of a gap as if the text ended there."""
        sides = self.sides(gap)
        return replace(sides, right=RightSide(b"", self._lexicon), target=(), conditionals=(sides.conditionals[0], 0))


def open_behind(left: Scan, right: RightSide) -> tuple[Bracket, ...]:
    """The brackets that a gap between these sides leaves open, outermost first: the likeliest of all ways.

    It keeps some of those that are open in front of it and opens those that the text behind it closes. Where that
    text stands deeper than in the innermost of these, it is in a block that only the text behind a further gap closes.
    """
    stack, unmatched = left.stack, right.unmatched
    ways = [
        (_cost(stack[:kept], opened, left, right) + COST_WRITTEN * (len(stack) - kept + opened), opened, kept)
        for kept in range(len(stack) + 1)
        for opened in range(len(unmatched) + 1)
    ]
    _, opened, kept = min(ways)
    new = [Bracket(mark.closer, mark.column if mark.leads else UNKNOWN) for mark in unmatched[:opened][::-1]]
    outer = [Bracket(b"", inner=0), *stack[: max(kept - len(unmatched) + opened, 0)]][-1]
    if left.whole and not right.whole and right.lexicon.braces and right.lowest > outer.inner != UNKNOWN:
        new.insert(0, Bracket(b"}", outer.inner))
    return (*stack[:kept], *new)


def _cost(kept: Sequence[Bracket], opened: int, left: Scan, right: RightSide) -> float:
    """How ill the text behind a gap goes with ``kept`` brackets and ``opened`` new ones within them."""
    cost = 0.0
    rest = list(kept)
    for place, level in enumerate(right.levels):
        if place > opened:
            closer = right.unmatched[place - 1]
            if rest:
                cost += _misfit(rest.pop(), closer)
            elif left.whole:
                cost += COST_TORN
        if level != UNKNOWN and rest:
            cost += COST_COLUMN * (rest[-1].column >= level != rest[-1].inner)
    return cost + COST_TORN * len(rest) * right.whole


def _misfit(opener: Bracket, closer: Bracket) -> float:
    if opener.closer != closer.closer:
        return COST_TORN
    if UNKNOWN in (opener.column, closer.column):
        return 0.0
    return COST_COLUMN * (opener.column != closer.column if closer.leads else opener.column > closer.column)


def scan_left(text: bytes, lexicon: Lexicon, before: Sides | None = None) -> Scan:
    """The state at a gap: a scan of the text in front of it, which begins behind the gap ``before`` this one.

    What that one lacks must not be taken for an open string here.
    """
    quote = before.right.inside if before else b""
    literals = find_literals(text, lexicon, quote)
    start = Scan(stack=before.target, inside=quote, whole=before.left.whole) if before else Scan(fresh=True)
    near = max(len(text) - WINDOW, 0)
    begin = _last_statement(text, near, literals) if lexicon.columns else _line_outside(text, near, literals)
    if begin and lexicon.columns:  # columns close every block before the next top-level statement
        start = Scan(fresh=True)
    elif begin:
        first = _line_outside(text, max(begin - FAR, 0), literals)
        outer = scan_brackets(text[first:begin], lexicon, None if first else replace(start, inside=b""))
        start = Scan(stack=outer.stack, whole=first == 0 and start.whole, fresh=True)
    return replace(scan(text[begin:], lexicon, start), inside=literals.inside)


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
