"""Minimal completions: the shortest text that carries an unfinished fill over to what follows the gap.

Where a valid fill is known the grammar's own tables complete another one better (``repair``). These guesses are for
the first one: which brackets each of several gaps is to leave open they take from all the text (``nesting``), and they
come to it ten times as fast as a search that knows nothing but the grammar (``junction``). They finish the operand,
close what is open and open what the text behind the gap closes. Guesses are ranked here and verified elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice, product, tee
from operator import itemgetter
from typing import NamedTuple

from lacuna_model.syntax.balance import Sides, open_behind
from lacuna_model.syntax.bridges import MOST_BRIDGES
from lacuna_model.syntax.column_lines import NEWLINE_RANK, WHOLE_LINES_RANK
from lacuna_model.syntax.conditionals import continued, count_open, settling
from lacuna_model.syntax.naming import heads_behind, with_heads
from lacuna_model.syntax.operands import Operands
from lacuna_model.syntax.scan import Scan, scan
from lacuna_model.syntax.vocabulary import finish_character
from lacuna_model.syntax.way import Way

LIMIT = 96
REOPENED_RANK = 1.0
# To turn the rest of a line into a comment is right where it was one, and else the very last resort.
COMMENT_RANK = 8.0
PROSE_BONUS = 7.5

Source = Callable[[], Iterable[tuple[float, bytes]]]


class _End(NamedTuple):
    """A text that a completion may end with, its rank, and the way to what is behind the gap then, once asked for."""

    rank: float
    text: bytes
    way: Callable[[], Way]


class Closer:
    """Completions for one gap; what depends on the text around it alone is found once.

    ``ends_inside`` says that the text behind the gap begins in a string or a comment.
    """

    def __init__(self, sides: Sides) -> None:
        self._sides, self._right, self._lexicon = sides, sides.right, sides.right.lexicon
        self.ends_inside = bool(sides.right.inside)
        self._heads = heads_behind(sides.right)
        self._operands = Operands(sides)
        # a gap that begins a line and ends before code holds whole lines
        self._whole_lines = not sides.text[sides.text.rfind(b"\n") + 1 :].strip() and not self._right.blank
        self._ends = list(self._find_ends())
        self._known: dict[bytes, Iterator[bytes]] = {}
        self._scanned: dict[bytes, Scan] = {}

    def _find_ends(self) -> Iterator[_End]:
        lexicon, right = self._lexicon, self._right
        yield _End(0.0, b"", self._way(lambda: self._sides))
        if lexicon.columns and right.margin > 1:
            # What follows is a line of its own: the fill may end as it would at a line's end, with a newline behind it.
            newline = self._operands.newline
            below = self._way(lambda: replace(self._sides, right=right.without(0, newline)))
            yield _End(WHOLE_LINES_RANK, newline, below)
        if lexicon.line_comment and not right.blank:
            yield _End(COMMENT_RANK - PROSE_BONUS * right.prose, lexicon.line_comment[0], self._way(self._behind_line))

    def _way(self, sides: Callable[[], Sides]) -> Callable[[], Way]:
        return cache(lambda: Way(sides(), whole_lines=self._whole_lines))

    def _behind_line(self) -> Sides:
        """The sides, were the rest of the line behind the gap not there."""
        behind = self._right.without(len(self._right.rest))
        return replace(self._sides, right=behind, target=open_behind(self._sides.left, behind))

    def open_ends(self, fill: bytes) -> tuple[tuple[bytes, ...], bytes]:
        """The closers of the brackets and of the string that are open behind the beginning of a fill."""
        state = self._scan(fill)
        return state.closers, state.inside

    def _scan(self, fill: bytes) -> Scan:
        """The state behind the beginning of a fill, of which there are few, and each is asked for often."""
        if fill not in self._scanned:
            self._scanned[fill] = scan(fill, self._lexicon, self._sides.left)
        return self._scanned[fill]

    def completions(self, fill: bytes) -> Iterator[bytes]:
        """Texts to put behind the beginning of a fill, likeliest first, without duplicates.

        Step after step asks for those of the same beginnings: what was found is kept.
        """
        self._known[fill], found = tee(self._known.get(fill) or self._find(fill))
        return found

    def _find(self, fill: bytes) -> Iterator[bytes]:
        character = finish_character(fill)
        state = self._scan(fill + character)
        count, due = self._sides.conditionals
        opened = count_open(fill, count)[0]
        if self._lexicon.conditionals and not state.inside:
            end = continued(self._operands.in_front(fill), self._right.text, due - opened)
            yield from [end] if end else []
        lines = settling(opened, due, self._operands.newline)
        for text in islice(unseen(_in_order(self._sources(state, fill)), set()), LIMIT):
            for settled in self._settled(text, lines):
                yield with_heads(character + settled, self._heads)

    def _sources(self, state: Scan, fill: bytes) -> list[tuple[float, Source]]:
        """Where completions come from, each with the least rank that it has, in the order of these."""
        sources: list[tuple[float, Source]] = [(0.0, lambda: [(0.0, b"")] if state.inside == b"\n" else [])]
        below = (WHOLE_LINES_RANK if self._whole_lines else NEWLINE_RANK) - 0.5
        for end, extra in product(self._ends, range(MOST_BRIDGES)):
            rank = end.rank + REOPENED_RANK * extra
            inline = partial(Way.inline, state=state, fill=fill, extra=extra)
            sources.append((rank - 1.0, partial(_ended, end, rank, inline)))
            if self._lexicon.columns:
                lines = partial(Way.on_new_line, state=state, fill=fill, extra=extra)
                sources.append((rank + below, partial(_ended, end, rank, lines)))
        return sorted(sources, key=itemgetter(0))

    def _settled(self, text: bytes, lines: bytes) -> list[bytes]:
        """A completion with the conditional lines that the fill lacks: in front, behind, or between its closers."""
        if not lines:
            return [text]
        newline = self._operands.newline
        below = b"" if self._right.blank else newline
        if not text:
            return [lines + below]
        closers = len(text) - len(text.lstrip(b"}"))
        split = [text[:count] + lines + newline + text[count:] for count in range(closers) if text[count:]]
        return [*split, text + lines + below] if split else [lines + newline + text, text + lines + below]


def _ended(
    end: _End, rank: float, complete: Callable[[Way], Iterator[tuple[float, bytes]]]
) -> list[tuple[float, bytes]]:
    return [(rank + own, text + end.text) for own, text in complete(end.way())]


def unseen(texts: Iterable[bytes], seen: set[bytes]) -> Iterator[bytes]:
    """Those texts that were not ``seen`` before, and are then."""
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text


def _in_order(sources: Sequence[tuple[float, Source]]) -> Iterator[bytes]:
    """The texts of all sources by rank; none is asked before its turn, since most often an early text will do."""
    waiting: list[tuple[float, bytes]] = []
    for least, source in sources:
        ready = sum(rank < least for rank, _ in waiting)
        yield from (text for _, text in waiting[:ready])
        waiting = sorted([*waiting[ready:], *source()], key=itemgetter(0))
    yield from (text for _, text in waiting)
