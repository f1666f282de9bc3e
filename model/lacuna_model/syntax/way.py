"""The way from the beginning of a gap's fill to what stands behind the gap, over the brackets to be open there."""

from collections.abc import Iterator

from lacuna_model.syntax.balance import Sides
from lacuna_model.syntax.bridges import Bridge, bridges
from lacuna_model.syntax.column_lines import ColumnLines
from lacuna_model.syntax.operands import Operands
from lacuna_model.syntax.right_side import STATEMENT
from lacuna_model.syntax.scan import Scan

OPENINGS = 6
# What stands in front of a block's brace, and what is at the end of a statement or in front of one.
BEFORE_BLOCKS = frozenset({b"", b")", b"else", b"do", b"try", b"finally"})
NO_STATEMENT = frozenset({b"", b";", b"{", b"}", b":"})


class Way:
    """Completions between two sides; ``whole_lines`` says that the gap holds such."""

    def __init__(self, sides: Sides, *, whole_lines: bool) -> None:
        self._sides, self._right, self._lexicon = sides, sides.right, sides.right.lexicon
        self._operands = Operands(sides)
        self._lines = ColumnLines(sides.right, self._operands, whole_lines=whole_lines)

    def inline(self, state: Scan, fill: bytes, extra: int) -> Iterator[tuple[float, bytes]]:
        """Completions that go on in the line behind the gap, over the bridge of this rank, each with its own."""
        right = self._right
        if not extra and state.inside and right.inside and (state.inside == right.inside or len(right.inside) == 1):
            yield -1.0, b""
        for bridge in self._bridges(state)[extra : extra + 1]:
            yield from self._over(bridge, state, fill)

    def on_new_line(self, state: Scan, fill: bytes, extra: int) -> Iterator[tuple[float, bytes]]:
        """Completions that end the statement, and lead over on lines of their own."""
        for bridge in self._bridges(state, statement=True)[extra : extra + 1]:
            yield from self._lines.over(bridge, state, fill)

    def _bridges(self, state: Scan, *, statement: bool = False) -> list[Bridge]:
        stack, kept = self._sides.target
        stale = state.stack[kept : kept + 1] == self._sides.left.stack[kept : kept + 1]
        most = kept if stale else len(stack)
        return bridges(state.stack, stack, self._lexicon, most=most, statement=statement)

    def _over(self, bridge: Bridge, state: Scan, fill: bytes) -> Iterator[tuple[float, bytes]]:
        right, lexicon = self._right, self._lexicon
        openings = right.openings(bridge.openers, outside=not bridge.kept)
        if lexicon.columns:  # a statement begins a line of its own
            openings = [one for one in openings if not STATEMENT.match(one)]
        if not openings:
            return
        opening = openings[0]
        for rank, operand in enumerate(self._operands.choices(state, fill)):
            body = operand + state.inside + bridge.closers
            if self._unended(state, operand, bridge):
                ended = operand + state.inside + bridge.closers.replace(b"}", lexicon.terminator + b"}", 1)
                yield rank - 0.25, ended + opening
            for tail_rank, tail in enumerate(self._tails(state, bridge)):
                for place, start in enumerate(openings[:OPENINGS]):
                    yield rank + tail_rank + 0.5 * place, body + tail + start
            if right.inside or bridge.openers:
                yield rank + 0.5, body + (b", " if right.inside else b" ") + opening
            elif lexicon.braces:  # an element of a list that goes on behind the gap
                yield rank + 1.5, body + b","

    def _unended(self, state: Scan, operand: bytes, bridge: Bridge) -> bool:
        """Whether a completion closes the block of a statement that has no terminator yet."""
        closed = [bracket for bracket in state.stack[bridge.kept :] if bracket.closer == b"}"]
        if not (self._lexicon.terminator and closed and closed[-1].words[1] in BEFORE_BLOCKS):
            return False
        in_brackets = state.stack[-1].closer != b"}"
        return in_brackets or bool(operand or state.inside or state.last not in NO_STATEMENT)

    def _tails(self, state: Scan, bridge: Bridge) -> list[bytes]:
        """What ends the statement; the text behind the gap may do so itself."""
        lexicon, in_brackets = self._lexicon, self._lexicon.columns and bridge.kept  # where no header ends
        end = lexicon.terminator or (b"" if lexicon.columns else self._operands.newline)
        tails = [b"", end] if end else [b""]
        if state.header_open and not self._right.header and not in_brackets and lexicon.body:
            block_follows = lexicon.columns and self._operands.block_follows(state)
            bodies = [b":", lexicon.body] if lexicon.columns else [lexicon.body]
            tails = (bodies if block_follows else bodies[::-1]) + tails
        if lexicon.choice and self._right.follows_choice and (state.stack or not lexicon.columns):
            tails = [lexicon.choice, lexicon.terminator + b" " + lexicon.operand + lexicon.choice, *tails]
        return tails
