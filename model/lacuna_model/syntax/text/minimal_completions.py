"""Minimal completions: the shortest texts between an unfinished fill and the suffix of its gap.

They complete the operand, close the open brackets, and open those that the suffix closes. All are verified elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, product, tee
from operator import itemgetter
from typing import Any

from lacuna_model.syntax.text.balance import OpenBrackets, Sides
from lacuna_model.syntax.text.column_lines import ColumnLines
from lacuna_model.syntax.text.literals import Completions, Tags
from lacuna_model.syntax.text.operands import Operands
from lacuna_model.syntax.text.scan import Bracket, Scan, scan, shared
from lacuna_model.text.characters import finish_character

LIMIT = 96
OPENINGS = 10
NEWLINE_RANK = 1.5
WHOLE_LINES_RANK = 0.4
ELEMENT_RANK = 1.3
# Turning the rest of a line into a comment is right if it was one, and otherwise the last resort.
COMMENT_RANK = 8.0
PROSE_BONUS = 7.5

Ranked = tuple[float, bytes]
Source = Callable[[], list[Ranked]]
Complete = Callable[..., Iterator[Ranked]]


class Closer:
    """Completions for one gap; the parts that depend only on the text around it are computed once.

    ``ends_inside`` is true if the suffix begins in a string or a comment.
    """

    def __init__(self, sides: Sides) -> None:
        self._sides, self._right, self._lexicon = sides, sides.right, sides.right.lexicon
        self.ends_inside = bool(sides.right.inside)
        self._operands = Operands(sides)
        # a gap that begins a line and ends before code holds whole lines
        self._whole_lines = not sides.text[sides.text.rfind(b"\n") + 1 :].strip() and not self._right.blank
        self._ends = [(0.0, b"")]
        if self._lexicon.line_comment and not self._right.blank:
            self._ends.append((COMMENT_RANK - PROSE_BONUS * self._right.prose, self._lexicon.line_comment[0]))
        self._known: dict[bytes, Iterator[bytes]] = {}
        self._scanned: dict[bytes, Scan] = {}

    def _scan(self, fill: bytes) -> Scan:
        """The state after the beginning of a fill, cached because few beginnings are asked for often."""
        if fill not in self._scanned:
            self._scanned[fill] = scan(fill, self._lexicon, self._sides.left)
        return self._scanned[fill]

    def completions(self, fill: bytes) -> Iterator[bytes]:
        """Yield texts to put after the beginning of a fill, likeliest first, without duplicates.

        Every step asks for the same beginnings, so the completions are cached.
        """
        self._known[fill], found = tee(self._known.get(fill) or self._find(fill))
        return found

    def _find(self, fill: bytes) -> Iterator[bytes]:
        character = finish_character(fill)
        state = self._scan(fill + character)
        for text in islice(unseen(_in_order(self._sources(state, fill)), set()), LIMIT):
            yield character + text

    def _sources(self, state: Scan, fill: bytes) -> list[tuple[float, Source]]:
        """The sources of completions, each with the least rank that it yields, in the order of these ranks."""
        sources: list[tuple[float, Source]] = [(0.0, lambda: [(0.0, b"")] if state.inside == b"\n" else [])]
        lines_rank = WHOLE_LINES_RANK if fill and self._whole_lines else NEWLINE_RANK
        for end_rank, end in self._ends:
            sides = self._sides.below if end else self._sides
            for place, target in enumerate(sides.targets):
                rank, given = end_rank + place, (sides, target, state, fill)
                sources.append((rank - 1.0, partial(_ended, self._in_line, end, rank, *given)))
                if self._lexicon.columns:
                    rank += lines_rank
                    sources.append((rank - 0.5, partial(_ended, self._on_lines, end, rank, *given)))
        return sorted(sources, key=itemgetter(0))

    def _in_line(self, sides: Sides, target: OpenBrackets, state: Scan, fill: bytes) -> Iterator[Ranked]:
        """Completions that continue in the line after the gap, and leave the brackets of a target open."""
        inside = sides.right.inside
        if state.inside and inside and (state.inside == inside or len(inside) == 1):
            yield -1.0, b""
        kept = shared(state.stack, target.stack)
        openings = sides.right.openings([bracket.closer for bracket in target.stack[kept:]], outside=not kept)
        ends_header = state.header_open and not sides.right.header and not kept
        endings = self._endings(self._closing(state.stack[kept:]), ends_header=ends_header)
        for rank, operand in enumerate(self._operands.choices(state, fill)):
            for (ending, end_rank), (place, opening) in product(endings.items(), enumerate(openings[:OPENINGS])):
                yield rank + end_rank + 0.5 * place, operand + state.inside + ending + opening

    def _endings(self, closers: bytes, *, ends_header: bool) -> dict[bytes, float]:
        """Closers with an end of the statement, which may also come before the first block that closes, by rank.

        The element of a list ends with a comma if the gap ends its line or the suffix begins in a string or comment.
        """
        lexicon = self._lexicon
        if lexicon.columns:
            return {
                closers + tail: rank for rank, tail in enumerate((lexicon.body, b":", b"") if ends_header else (b"",))
            }
        own, brace, blocks = closers.partition(b"}")
        ended = own + lexicon.terminator + brace + blocks if lexicon.terminator else closers + self._operands.newline
        elements = {closers + b",": ELEMENT_RANK} if self.ends_inside or self._right.blank else {}
        return {closers: 0.0, ended: 1.0, **elements}

    def _on_lines(self, sides: Sides, target: OpenBrackets, state: Scan, fill: bytes) -> Iterator[Ranked]:
        return ColumnLines(sides, target, self._operands).over(state, fill)

    def _closing(self, brackets: Sequence[Bracket]) -> bytes:
        """The closers of brackets, given outermost first, each with the text that must follow the block of its word."""
        closers = []
        for bracket in reversed(brackets):
            closers.append(bracket.closer if len(bracket.closer) == 1 else b"\n" + bracket.closer)
            if bracket.closer == b"}":
                closers.append(next((tail for word, tail in self._lexicon.tails if word in bracket.words), b""))
        return b"".join(closers)


def completions(sides: Sides) -> Completions:
    """Return what yields the completions of a gap between two sides, closing tags included."""
    closer = Closer(sides)
    if not sides.right.lexicon.tags:
        return closer.completions
    return partial(Tags(sides.text, sides.right.text).completions, others=closer.completions)


def _ended(complete: Complete, end: bytes, rank: float, *given: Any) -> list[Ranked]:
    """Completions with an end; after the beginning of a comment the rest of the line is part of the comment."""
    return [(rank + own, text + end) for own, text in complete(*given)]


def _in_order(sources: Sequence[tuple[float, Source]]) -> Iterator[bytes]:
    """The texts of all sources by rank; later sources are only asked if the early texts are not enough."""
    waiting: list[Ranked] = []
    for least, source in sources:
        ready = sum(rank < least for rank, _ in waiting)
        yield from (text for _, text in waiting[:ready])
        waiting = sorted([*waiting[ready:], *source()], key=itemgetter(0))
    yield from (text for _, text in waiting)


def unseen(texts: Iterable[bytes], seen: set[bytes]) -> Iterator[bytes]:
    """Yield the texts that are not in ``seen``, and add them to it."""
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text
