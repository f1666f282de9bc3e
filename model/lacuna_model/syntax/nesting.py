"""Which brackets all gaps of a document leave open, chosen together: a beam search over the stack of open brackets.

Gap after gap each way of closing some brackets and opening others is charged for what it writes and for the lines and
closers behind it that do not fit. A bracket that only a later text closes costs little where it is opened in the right
gap, and much where it has to be opened too late, deep in a block that the closer does not stand in.
"""

import math
import re
from bisect import insort
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from lacuna_model.syntax.right_side import RightSide
from lacuna_model.syntax.scan import UNKNOWN, Bracket, Scan

COST_WRITTEN = 0.3  # a bracket that the gap would have to write
COST_COLUMN = 1.0  # a bracket or a line that stands where it does not belong
COST_DEEP = 0.5  # a line that stands deeper than the first one of its block would
COST_ARGUMENT = 0.25  # a statement's line that would stand in a parenthesis
COST_ELEMENT = 2.0  # a statement that would stand among the elements of a list
COST_TORN = 3.0  # a bracket that would stay without its other half
# What stands in front of a brace that holds elements.
BEFORE_ELEMENTS = (b",", b"{", b"}", b"(", b"[")
ELEMENTS = (b"", b",")
BEFORE_BLOCKS = (b")", b"struct", b"interface", b"else")
BLOCK = re.compile(rb"\n([ \t]*)\S[^\n]*\{[ \t]*\n([ \t]*)\S")
BEAM = 10
MOST_WRITTEN = 7
MOST_LASTING = 2
MOST_LEVELS = 40  # further closers of one text are not looked at one by one

Stack = tuple[Bracket, ...]


class Target(NamedTuple):
    """What a gap leaves open, outermost first, and how many of these brackets were open in front of it."""

    stack: Stack = ()
    kept: int = 0


class _Path(NamedTuple):
    """What each gap so far leaves open, and the stack behind the text that follows the last of them."""

    cost: float
    left_open: tuple[Target, ...]
    stack: Stack


class _Beam:
    """The cheapest paths, one for each way in which brackets may be open behind it."""

    def __init__(self) -> None:
        self._found: dict[tuple[tuple[bytes, ...], int], _Path] = {}
        self._costs: list[float] = []

    @property
    def worst(self) -> float:
        """What costs more than this has no place."""
        return self._costs[BEAM - 1] if len(self._costs) >= BEAM else math.inf

    def add(self, path: _Path) -> None:
        """Takes a path in, unless there is a cheaper one that ends like it."""
        if path.cost > self.worst:
            return
        key = (tuple([bracket.closer for bracket in path.stack]), path.stack[-1].column if path.stack else 0)
        known = self._found.get(key)
        if known is None or path.cost < known.cost:
            self._found[key] = path
            if known is not None:
                self._costs.remove(known.cost)
            insort(self._costs, path.cost)

    def best(self) -> list[_Path]:
        """The cheapest ones, in order."""
        return sorted(self._found.values(), key=lambda path: path.cost)[:BEAM]


def nest(left: Scan, rights: Sequence[RightSide]) -> tuple[Target, ...]:
    """The brackets that each gap leaves open; ``rights`` are the texts behind the gaps."""
    unit = _unit(rights) if len(rights) > 1 else 0
    paths = [_Path(0.0, (), left.stack)]
    for index, right in enumerate(rights):
        lasting = _lasting(rights[index + 1 :])
        found = _Beam()
        for path in paths:
            for written, cost, kept, new in _ways(path.stack, right, lasting):
                if path.cost + COST_WRITTEN * written > found.worst:
                    break  # all further ways write as much
                if path.cost + cost > found.worst:
                    continue
                stack = (*path.stack[:kept], *new)
                more, rest = _behind(stack, right, whole=left.whole, unit=unit, most=found.worst - path.cost - cost)
                found.add(_Path(path.cost + cost + more, (*path.left_open, Target(stack, kept)), rest))
        paths = found.best()
    torn = COST_TORN * rights[-1].whole
    return min(paths, key=lambda path: path.cost + torn * len(path.stack)).left_open


def _unit(rights: Sequence[RightSide]) -> int:
    """By how much the lines of a block are most often indented; 0 where no block begins in the texts."""
    counts = Counter(
        len(below.expandtabs()) - len(above.expandtabs())
        for right in rights
        for above, below in BLOCK.findall(right.text)
    )
    return max((unit for unit, _ in counts.most_common(1)), default=0)


def _lasting(later: Sequence[RightSide]) -> list[tuple[bytes, ...]]:
    """Brackets that a gap may open for the texts behind later ones to close, outermost first."""
    closers = sorted({bracket.closer for right in later for bracket in right.unmatched})
    return [marks for count in range(MOST_LASTING + 1) for marks in product(closers, repeat=count)]


def _ways(
    stack: Stack, right: RightSide, lasting: Sequence[tuple[bytes, ...]]
) -> Iterator[tuple[int, float, int, Stack]]:
    """(brackets written, cost, brackets kept, new ones), in the order of what is written."""
    counts = _counts(len(stack), len(right.unmatched), tuple(map(len, lasting)))
    for closed, opened, index in counts:
        kept = len(stack) - closed
        column = _least_column(stack[kept - 1]) if kept else 0
        written = closed + opened + len(lasting[index])
        cost = COST_WRITTEN * written
        new = [Bracket(mark, column, due=True) for mark in lasting[index]]
        for mark in reversed(right.unmatched[:opened]):
            if mark.leads and column != UNKNOWN != mark.column:
                cost += COST_COLUMN * (mark.column < column)
            new.append(Bracket(mark.closer, mark.column if mark.leads else column, due=not mark.leads))
        yield written, cost, kept, tuple(new)


def _least_column(block: Bracket) -> int:
    """How far left a bracket may stand that is written within another."""
    if block.inner != UNKNOWN:
        return block.inner
    return block.column if block.due or block.column == UNKNOWN else block.column + 1


@lru_cache(maxsize=256)
def _counts(depth: int, lacking: int, lasting: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """How many to close, how many to open, and which lasting ones (by index), in the order of what is written.

    More than a few are written only to close all that is open, or to open just what the text behind closes.
    """
    ways = []
    for closed in {*range(min(depth, MOST_WRITTEN) + 1), depth}:
        exact = max(lacking - (depth - closed), 0)
        ways += [(closed + opened, closed, opened, 0) for opened in {*range(min(lacking, MOST_WRITTEN) + 1), exact}]
        ways += [
            (closed + opened + length, closed, opened, index)
            for opened in range(min(lacking, MOST_WRITTEN) + 1)
            for index, length in enumerate(lasting)
            if length and closed + opened + length <= MOST_WRITTEN
        ]
    return [way[1:] for way in sorted(ways)]


def _behind(stack: Stack, right: RightSide, *, whole: bool, unit: int, most: float) -> tuple[float, Stack]:
    """How ill a text goes with the brackets open in front of it, and those open behind it.

    ``whole`` says that the stack holds all that is open, ``unit`` how deep a block is indented.
    """
    cost = COST_ELEMENT * (right.begins_statement and _holds_elements(stack, right))
    rest = list(stack)
    for place, level in enumerate(right.levels[: MOST_LEVELS + 1]):
        if place and rest:
            cost += _misfit(rest.pop(), right.unmatched[place - 1])
        elif place:
            cost += COST_TORN * whole
        if place - 1 in right.listed if place else right.fields:
            cost += COST_ELEMENT * (_is_block(rest[-1], right) if rest else whole)
            if rest and rest[-1].due:
                rest[-1] = rest[-1]._replace(words=ELEMENTS)
        if level != UNKNOWN and rest:
            cost += COST_COLUMN * _juts_out(level, rest[-1], right)
        if cost > most:
            return cost, stack
    if len(right.unmatched) > MOST_LEVELS:
        rest = rest[: max(len(rest) - len(right.unmatched) + MOST_LEVELS, 0)]
    lowest = right.lowest
    if lowest != UNKNOWN and right.lexicon.braces and not right.to_the_end:
        inner = rest[-1].inner if rest else 0
        if inner != UNKNOWN:
            cost += COST_COLUMN * (lowest > inner)
        elif unit and rest[-1].column != UNKNOWN:
            cost += COST_DEEP * (lowest > rest[-1].column + unit)
        if rest and inner == UNKNOWN:
            rest[-1] = rest[-1]._replace(inner=lowest)
    return cost + _misplaced(rest, right), (*rest, *right.stack)


def _holds_elements(stack: Stack, right: RightSide) -> bool:
    """Whether the innermost bracket is of a list, or is written as a block right in one of values without a head."""
    if not stack or stack[-1].words[1] in BEFORE_ELEMENTS:
        return bool(stack)
    return bool(right.lexicon.record) and stack[-1].due and stack[-2:][0].words[1] in BEFORE_ELEMENTS


def _is_block(bracket: Bracket, right: RightSide) -> bool:
    """Whether a bracket can hold no named values and no lists of anything."""
    match = b"match" in right.lexicon.headers and bracket.words[1] == b")"  # arms are listed
    return bracket.closer == b"}" and bracket.words[1] in BEFORE_BLOCKS and not match


def _juts_out(level: int, block: Bracket, right: RightSide) -> bool:
    """Whether a line stands further left than a block's own; in the C family a namespace may not be indented."""
    if block.due:
        return block.column > level or (block.column == level and not right.lexicon.conditionals)
    return block.column >= level != block.inner


def _misplaced(rest: Sequence[Bracket], right: RightSide) -> float:
    """What speaks against the innermost open bracket behind a text's closers: statements, or blocks that go further."""
    if not rest or right.to_the_end:
        return 0.0
    cost = 0.0
    if rest[-1].closer != b"}":
        cost += COST_COLUMN * right.statements or COST_ARGUMENT * (rest[-1].due and right.lowest != UNKNOWN)
    if right.stack and right.stack[0].column == UNKNOWN != right.stack[0].inner:
        cost += COST_COLUMN * (right.stack[0].inner <= rest[-1].inner)
    return cost


def _misfit(opener: Bracket, closer: Bracket) -> float:
    if opener.closer != closer.closer:
        return COST_TORN
    if UNKNOWN in (opener.column, closer.column):
        return 0.0
    if opener.due and closer.leads and closer.column >= opener.inner != UNKNOWN:
        return COST_COLUMN
    exact = closer.leads and not opener.due
    return COST_COLUMN * (opener.column != closer.column if exact else opener.column > closer.column)
