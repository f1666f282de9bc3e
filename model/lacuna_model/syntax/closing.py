"""Minimal completions: the shortest text that carries an unfinished fill over to what follows the gap.

Where a valid fill is known the grammar's own tables complete another one better (``repair``). These guesses are for
the first one: which brackets each of several gaps is to leave open they take from all the text (``nesting``), and they
come to it ten times as fast as a search that knows nothing but the grammar (``junction``). They finish the operand,
close what is open and open what the text behind the gap closes. Guesses are ranked here and verified elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, tee
from operator import itemgetter

from lacuna_model.syntax.balance import Sides
from lacuna_model.syntax.bridges import MOST_BRIDGES, Bridge, bridges
from lacuna_model.syntax.column_lines import ColumnLines
from lacuna_model.syntax.conditionals import continued, count_open, settling
from lacuna_model.syntax.naming import heads_behind, with_heads
from lacuna_model.syntax.operands import Operands
from lacuna_model.syntax.right_side import STATEMENT
from lacuna_model.syntax.scan import Scan, scan
from lacuna_model.syntax.vocabulary import finish_character

LIMIT = 96
REOPENED_RANK = 1.0
OPENINGS = 6
# What stands in front of a block's brace, and what is at the end of a statement or in front of one.
BEFORE_BLOCKS = frozenset({b"", b")", b"else", b"do", b"try", b"finally"})
NO_STATEMENT = frozenset({b"", b";", b"{", b"}", b":"})

Source = Callable[[], Iterable[tuple[float, bytes]]]


class Closer:
    """Completions for one gap; what depends on the text around it alone is found once.

    ``ends_inside`` says that the text behind the gap begins in a string or a comment.
    """

    def __init__(self, sides: Sides) -> None:
        self._sides, self._right, self._lexicon = sides, sides.right, sides.right.lexicon
        self.ends_inside = bool(sides.right.inside)
        self._heads = heads_behind(sides.right)
        self._operands = Operands(sides)
        self._lines = ColumnLines(sides, self._operands)
        self._known: dict[bytes, Iterator[bytes]] = {}
        self._scanned: dict[bytes, Scan] = {}

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
        for extra in range(MOST_BRIDGES):
            rank = REOPENED_RANK * extra
            sources.append((rank - 1.0, partial(self._inline, state, fill, extra)))
            if self._lexicon.columns:
                sources.append((rank + self._lines.least_rank, partial(self._on_new_line, state, fill, extra)))
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

    def _inline(self, state: Scan, fill: bytes, extra: int) -> Iterator[tuple[float, bytes]]:
        """Completions that go on in the line behind the gap, over the bridge of this rank."""
        right = self._right
        if not extra and state.inside and right.inside and (state.inside == right.inside or len(right.inside) == 1):
            yield -1.0, b""
        for way in self._bridges(state)[extra : extra + 1]:
            for rank, text in self._over(way, state, fill):
                yield rank + REOPENED_RANK * extra, text

    def _on_new_line(self, state: Scan, fill: bytes, extra: int) -> Iterator[tuple[float, bytes]]:
        """Completions that end the statement, and lead over on lines of their own."""
        for way in self._bridges(state, statement=True)[extra : extra + 1]:
            for rank, text in self._lines.over(way, state, fill):
                yield rank + REOPENED_RANK * extra, text

    def _bridges(self, state: Scan, *, statement: bool = False) -> list[Bridge]:
        stack, kept = self._sides.target
        stale = state.stack[kept : kept + 1] == self._sides.left.stack[kept : kept + 1]
        most = kept if stale else len(stack)
        return bridges(state.stack, stack, self._lexicon, most=most, statement=statement)

    def _over(self, way: Bridge, state: Scan, fill: bytes) -> Iterator[tuple[float, bytes]]:
        right, lexicon = self._right, self._lexicon
        openings = right.openings(way.openers, outside=not way.kept)
        if lexicon.columns:  # a statement begins a line of its own
            openings = [one for one in openings if not STATEMENT.match(one)]
        if not openings:
            return
        opening = openings[0]
        for rank, operand in enumerate(self._operands.choices(state, fill)):
            body = operand + state.inside + way.closers
            if self._unended(state, operand, way):
                ended = operand + state.inside + way.closers.replace(b"}", lexicon.terminator + b"}", 1)
                yield rank - 0.25, ended + opening
            for tail_rank, tail in enumerate(self._tails(state, way)):
                for place, start in enumerate(openings[:OPENINGS]):
                    yield rank + tail_rank + 0.5 * place, body + tail + start
            if right.inside or way.openers:
                yield rank + 0.5, body + (b", " if right.inside else b" ") + opening
            elif lexicon.braces:  # an element of a list that goes on behind the gap
                yield rank + 1.5, body + b","

    def _unended(self, state: Scan, operand: bytes, way: Bridge) -> bool:
        """Whether a completion closes the block of a statement that has no terminator yet."""
        closed = [bracket for bracket in state.stack[way.kept :] if bracket.closer == b"}"]
        if not (self._lexicon.terminator and closed and closed[-1].words[1] in BEFORE_BLOCKS):
            return False
        in_brackets = state.stack[-1].closer != b"}"
        return in_brackets or bool(operand or state.inside or state.last not in NO_STATEMENT)

    def _tails(self, state: Scan, way: Bridge) -> list[bytes]:
        """What ends the statement; the text behind the gap may do so itself."""
        lexicon, in_brackets = self._lexicon, self._lexicon.columns and way.kept  # where no header ends
        end = lexicon.terminator or (b"" if lexicon.columns else self._operands.newline)
        tails = [b"", end] if end else [b""]
        if state.header_open and not self._right.header and not in_brackets and lexicon.body:
            block_follows = lexicon.columns and self._operands.block_follows(state)
            bodies = [b":", lexicon.body] if lexicon.columns else [lexicon.body]
            tails = (bodies if block_follows else bodies[::-1]) + tails
        if lexicon.choice and self._right.follows_choice and (state.stack or not lexicon.columns):
            tails = [lexicon.choice, lexicon.terminator + b" " + lexicon.operand + lexicon.choice, *tails]
        return tails


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
