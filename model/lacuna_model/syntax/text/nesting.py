"""Which brackets all gaps of a document leave open, chosen together by a beam search over the stack of open brackets.

For each gap, every way to close some brackets and open others has a cost: for the brackets that it writes, and for
lines and closers after it that do not fit. A bracket that only a later text closes costs little if the right gap opens
it. It costs much if it must be opened too late, deep in a block that does not contain the closer.
"""

import math
from bisect import insort
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from lacuna_model.syntax.text.scan import UNKNOWN, Bracket, Scan
from lacuna_model.syntax.text.suffix_text import RightSide

COST_WRITTEN = 0.3  # a bracket that the gap would have to write
COST_COLUMN = 1.0  # a bracket or a line in the wrong column
COST_TORN = 3.0  # a bracket without its other half
BEAM = 10
MAX_WRITTEN = 7
MAX_LASTING = 2
MAX_LEVELS = 40  # closers of one text that are checked one by one

Stack = tuple[Bracket, ...]


class OpenBrackets(NamedTuple):
    """The brackets that a gap leaves open, outermost first, and how many of them were open before it."""

    stack: Stack = ()
    kept: int = 0


class _Path(NamedTuple):
    """The brackets that each gap so far leaves open, and the stack after the text that follows the last of them."""

    cost: float
    left_open: tuple[OpenBrackets, ...]
    stack: Stack


class _Beam:
    """The cheapest paths, one for each way in which brackets may be open after it."""

    def __init__(self) -> None:
        self._found: dict[tuple[tuple[bytes, ...], int], _Path] = {}
        self._costs: list[float] = []

    @property
    def worst(self) -> float:
        """The highest cost that still has a place in the beam."""
        return self._costs[BEAM - 1] if len(self._costs) >= BEAM else math.inf

    def add(self, path: _Path) -> None:
        """Add a path, unless a cheaper one ends with the same open brackets."""
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
        """The cheapest paths, in order."""
        return sorted(self._found.values(), key=lambda path: path.cost)[:BEAM]


def nest(left: Scan, rights: Sequence[RightSide]) -> tuple[OpenBrackets, ...]:
    """Return the brackets that each gap leaves open; ``rights`` are the texts after the gaps."""
    paths = [_Path(0.0, (), left.stack)]
    for index, right in enumerate(rights):
        lasting = _lasting(rights[index + 1 :])
        found = _Beam()
        for path in paths:
            for written, cost, kept, new in _ways(path.stack, right, lasting):
                if path.cost + COST_WRITTEN * written > found.worst:
                    break  # all further ways write at least as many
                if path.cost + cost > found.worst:
                    continue
                stack = (*path.stack[:kept], *new)
                more, rest = _behind(stack, right, whole=left.whole, most=found.worst - path.cost - cost)
                found.add(_Path(path.cost + cost + more, (*path.left_open, OpenBrackets(stack, kept)), rest))
        paths = found.best()
    torn = COST_TORN * rights[-1].whole
    return min(paths, key=lambda path: path.cost + torn * len(path.stack)).left_open


def _lasting(later: Sequence[RightSide]) -> list[tuple[bytes, ...]]:
    """Brackets that a gap may open for later texts to close, outermost first."""
    closers = sorted({bracket.closer for right in later for bracket in right.unmatched})
    return [marks for count in range(MAX_LASTING + 1) for marks in product(closers, repeat=count)]


def _ways(
    stack: Stack, right: RightSide, lasting: Sequence[tuple[bytes, ...]]
) -> Iterator[tuple[int, float, int, Stack]]:
    """Yield (brackets written, cost, brackets kept, new ones), in the order of the brackets written."""
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
    """The least column of a bracket that is written inside another."""
    if block.inner != UNKNOWN:
        return block.inner
    return block.column if block.due or block.column == UNKNOWN else block.column + 1


@lru_cache(maxsize=256)
def _counts(depth: int, lacking: int, lasting: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """The numbers of brackets to close and to open, and the index of the lasting ones, by the number written.

    More than ``MAX_WRITTEN`` are closed only if all are closed, or opened only if the suffix closes just these.
    """
    ways = []
    for closed in {*range(min(depth, MAX_WRITTEN) + 1), depth}:
        exact = max(lacking - (depth - closed), 0)
        ways += [(closed + opened, closed, opened, 0) for opened in {*range(min(lacking, MAX_WRITTEN) + 1), exact}]
        ways += [
            (closed + opened + length, closed, opened, index)
            for opened in range(min(lacking, MAX_WRITTEN) + 1)
            for index, length in enumerate(lasting)
            if length and closed + opened + length <= MAX_WRITTEN
        ]
    return [way[1:] for way in sorted(ways)]


def _behind(stack: Stack, right: RightSide, *, whole: bool, most: float) -> tuple[float, Stack]:
    """The cost of the brackets that are open before a text, and those that are open after it.

    ``whole`` means that the stack holds all open brackets. Beyond a cost of ``most`` the stack is not computed.
    """
    cost, rest = 0.0, list(stack)
    for place, level in enumerate(right.levels[: MAX_LEVELS + 1]):
        if place and rest:
            cost += _misfit(rest.pop(), right.unmatched[place - 1])
        elif place:
            cost += COST_TORN * whole
        if level != UNKNOWN and rest:
            cost += COST_COLUMN * _juts_out(level, rest[-1], right)
        if cost > most:
            return cost, stack
    if len(right.unmatched) > MAX_LEVELS:
        rest = rest[: max(len(rest) - len(right.unmatched) + MAX_LEVELS, 0)]
    if right.lowest != UNKNOWN and not (right.lexicon.columns or right.to_the_end):
        inner = rest[-1].inner if rest else 0
        cost += COST_COLUMN * (right.lowest > inner != UNKNOWN)
        if rest and inner == UNKNOWN:
            rest[-1] = rest[-1]._replace(inner=right.lowest)
    return cost + _misplaced(rest, right), (*rest, *right.stack)


def _misplaced(rest: Sequence[Bracket], right: RightSide) -> float:
    """The cost of the innermost open bracket after a text's closers: statements in it, or blocks further left."""
    if not rest or right.to_the_end:
        return 0.0
    cost = COST_COLUMN * (right.statements and rest[-1].closer != b"}")
    if right.stack and right.stack[0].column == UNKNOWN != right.stack[0].inner:
        cost += COST_COLUMN * (right.stack[0].inner <= rest[-1].inner)
    return cost


def _juts_out(level: int, block: Bracket, right: RightSide) -> bool:
    """Whether a line is further left than a block's lines; in the C family a namespace may not be indented."""
    if block.due:
        return block.column > level or (block.column == level and not right.lexicon.conditionals)
    return block.column >= level != block.inner


def _misfit(opener: Bracket, closer: Bracket) -> float:
    if opener.closer != closer.closer:
        return COST_TORN
    if UNKNOWN in (opener.column, closer.column):
        return 0.0
    if opener.due and closer.leads and closer.column >= opener.inner != UNKNOWN:
        return COST_COLUMN
    exact = closer.leads and not opener.due
    return COST_COLUMN * (opener.column != closer.column if exact else opener.column > closer.column)
