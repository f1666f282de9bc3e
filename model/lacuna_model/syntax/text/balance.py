"""Which brackets each gap must leave open so that the whole document balances.

With several gaps the brackets alone do not tell which gap closes which; the indentation of the lines after each gap
does. Each gap starts with the brackets that its prefix leaves open and has to reach those that its suffix needs,
whatever the other gaps hold.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.literals import Literals, find_literals
from lacuna_model.syntax.text.nesting import OpenBrackets, nest
from lacuna_model.syntax.text.scan import FAR, TOP_LEVEL, Scan, scan, scan_brackets
from lacuna_model.syntax.text.suffix_text import RightSide, right_side

# Bytes that are scanned token by token; in text further away only brackets are counted.
WINDOW = 6000


@dataclass(frozen=True, slots=True)
class Sides:
    """The surroundings of a gap: its prefix and the prefix's scan, its suffix, and the brackets that it leaves open."""

    text: bytes
    left: Scan
    right: RightSide
    target: OpenBrackets


class Balance:
    """The sides of all gaps of a document, computed on demand from the first gap on."""

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
            left = scan_left(self._text[since:start], self._lexicon, self._found[-1] if index else None)
            right = self._rights[index]
            target = open_behind(left, right) if self._lexicon.columns else self._nesting[index]
            self._found.append(Sides(self._text[:start], left, right, target))
        return self._found[gap]

    @cached_property
    def _rights(self) -> list[RightSide]:
        """The texts after each gap, up to the next gap."""
        found: list[RightSide] = []
        since, until = 0, [start for start, _ in self._gaps[1:]] + [len(self._text)]
        for (start, end), stop in zip(self._gaps, until, strict=True):
            inside = find_literals(self._text[since:start], self._lexicon, found[-1].inside if found else b"").inside
            last = len(found) + 1 == len(self._gaps)
            found.append(right_side(self._text[end:stop], self._lexicon, inside, to_the_end=last))
            since = end
        return found

    @cached_property
    def _nesting(self) -> Sequence[OpenBrackets]:
        """The brackets that each gap leaves open where blocks are brackets, so that all gaps share them."""
        return nest(scan_left(self._text[: self._gaps[0][0]], self._lexicon), self._rights)

    def ending(self, gap: int) -> Sides:
        """The sides of a gap as if the text ended there."""
        return replace(self.sides(gap), right=RightSide(b"", self._lexicon), target=OpenBrackets())


def open_behind(left: Scan, right: RightSide) -> OpenBrackets:
    """The brackets that a gap between these sides leaves open, outermost first: the likeliest way."""
    return nest(left, [right])[0]


def scan_left(text: bytes, lexicon: Lexicon, before: Sides | None = None) -> Scan:
    """The state at a gap: a scan of the text between the previous gap (``before``) and this one.

    The text may begin in the string or comment that the previous gap leaves open.
    """
    quote = before.right.inside if before else b""
    literals = find_literals(text, lexicon, quote)
    start = Scan(stack=before.target.stack, inside=quote, whole=before.left.whole) if before else Scan(fresh=True)
    near = max(len(text) - WINDOW, 0)
    begin = _last_statement(text, near, literals) if lexicon.columns else _line_outside(text, near, literals)
    if begin and lexicon.columns:  # the next top-level statement closes every block
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
