"""Which brackets each gap must leave open so that all of them together balance.

With several gaps the brackets alone do not tell which gap closes what; the indentation of the lines behind each does.
Every gap takes over what the text up to it leaves open and has to bring it to what the text behind it needs, whatever
the others hold.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from lacuna_model.syntax.conditionals import count_due, count_open
from lacuna_model.syntax.languages import Lexicon
from lacuna_model.syntax.literals import Literals, find_literals
from lacuna_model.syntax.nesting import Target, nest
from lacuna_model.syntax.right_side import RightSide, right_side
from lacuna_model.syntax.scan import FAR, TOP_LEVEL, Scan, scan, scan_brackets

# Read token by token; what lies further away is read for its brackets alone.
WINDOW = 6000


@dataclass(frozen=True, slots=True)
class Sides:
    """What a gap stands between: the text in front of it and that one's scan, what follows, and what it leaves open.

    ``conditionals`` are how many ``#if`` are open in front of it, and how many it leaves open.
    """

    text: bytes
    left: Scan
    right: RightSide
    target: Target
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
            since, start = self._gaps[index - 1][1] if index else 0, self._gaps[index][0]
            left = scan_left(self._text[since:start], self._lexicon, self._found[-1]) if index else self._first
            right = self._right(index, left.inside) if self._lexicon.columns else self._rights[index]
            target = open_behind(left, right) if self._lexicon.columns else self._nesting[index]
            self._found.append(Sides(self._text[:start], left, right, target, self._conditionals(index, since)))
        return self._found[gap]

    def _right(self, gap: int, inside: bytes) -> RightSide:
        """The text behind a gap; ``inside`` is what the gap begins in."""
        last = gap + 1 == len(self._gaps)
        until = len(self._text) if last else self._gaps[gap + 1][0]
        return right_side(self._text[self._gaps[gap][1] : until], self._lexicon, inside, to_the_end=last)

    @cached_property
    def _first(self) -> Scan:
        """The state at the first gap."""
        return scan_left(self._text[: self._gaps[0][0]], self._lexicon)

    @cached_property
    def _rights(self) -> list[RightSide]:
        """The texts behind all gaps."""
        found = [self._right(0, self._first.inside)]
        for gap, ((_, since), (start, _)) in enumerate(pairwise(self._gaps), start=1):
            literals = find_literals(self._text[since:start], self._lexicon, found[-1].inside)
            found.append(self._right(gap, literals.inside))
        return found

    @cached_property
    def _nesting(self) -> Sequence[Target]:
        """What each gap leaves open, where blocks are brackets and all gaps have to share them."""
        return nest(self._first, self._rights)

    def _conditionals(self, gap: int, since: int) -> tuple[int, int]:
        if not self._lexicon.conditionals:
            return 0, 0
        before = self._found[-1].conditionals[1] if gap else 0
        borders = [*self._gaps[gap:], (len(self._text), 0)]
        pieces = [self._text[one[1] : other[0]] for one, other in pairwise(borders)]
        return count_open(self._text[since : self._gaps[gap][0]], before)[0], count_due(pieces)

    def filled(self, first: int, fills: Sequence[bytes]) -> "Balance":
        """The same text with the gaps from the ``first`` on filled, which are gaps no longer."""
        text, gaps = self._text, list(self._gaps)
        for fill in fills:
            start, end = gaps.pop(first)
            text = text[:start] + fill + text[end:]
            longer = len(fill) - (end - start)
            gaps[first:] = [(later + longer, stop + longer) for later, stop in gaps[first:]]
        return Balance(text, gaps, self._lexicon) if fills else self

    def ending(self, gap: int) -> Sides:
        """The sides of a gap as if the text ended there."""
        sides = self.sides(gap)
        right, conditionals = RightSide(b"", self._lexicon), (sides.conditionals[0], 0)
        return replace(sides, right=right, target=Target(), conditionals=conditionals)


def open_behind(left: Scan, right: RightSide) -> Target:
    """The brackets that a gap between these sides leaves open, outermost first: the likeliest of all ways."""
    return nest(left, [right])[0]


def scan_left(text: bytes, lexicon: Lexicon, before: Sides | None = None) -> Scan:
    """The state at a gap: a scan of the text in front of it, which begins behind the gap ``before`` this one.

    What that one lacks must not be taken for an open string here.
    """
    quote = before.right.inside if before else b""
    literals = find_literals(text, lexicon, quote)
    start = Scan(stack=before.target.stack, inside=quote, whole=before.left.whole) if before else Scan(fresh=True)
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
