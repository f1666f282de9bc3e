"""Minimal completions: the shortest text that carries an unfinished fill over to what follows the gap.

A draft is rarely a complete fill, since the rest of it is not written yet. To commit its beginning there must be
*some* complete fill that begins so, and a short one is easy to find: finish the operand, close what is open, end the
statement, lead over to the line that goes on behind the gap. Guesses are ranked here and verified elsewhere.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import islice, product, tee
from operator import itemgetter

from lacuna_model.syntax.balance import Sides, open_behind
from lacuna_model.syntax.blocks import Line, Needs, lay_lines, open_lines, render
from lacuna_model.syntax.bridges import MOST_BRIDGES, Bridge, bridges
from lacuna_model.syntax.conditionals import continued, count_open, settling
from lacuna_model.syntax.left_side import (
    CLOSURE,
    DECORATED,
    DEFINITION,
    FIELDS,
    REACH,
    UNFINISHED,
    beginnings,
)
from lacuna_model.syntax.naming import heads_behind, with_heads
from lacuna_model.syntax.nesting import Target
from lacuna_model.syntax.right_side import STATEMENT, RightSide
from lacuna_model.syntax.scan import Scan, scan
from lacuna_model.syntax.vocabulary import finish_character

LIMIT = 96
NEWLINE_RANK = 1.5
WHOLE_LINES_RANK = 0.4
REOPENED_RANK = 1.0
OPENINGS = 6
# To turn the rest of a line into a comment is right where it was one, and else the very last resort.
COMMENT_RANK = 8.0
PROSE_BONUS = 7.5
# A constant without its value.
CONSTANT = re.compile(rb"\bconst\s+[\w$]+\Z")
INITIAL = b" = "
# What stands in front of a block's brace, and what is at the end of a statement or in front of one.
BEFORE_BLOCKS = frozenset({b"", b")", b"else", b"do", b"try", b"finally"})
NO_STATEMENT = frozenset({b"", b";", b"{", b"}", b":"})
WANTS_OPERAND = frozenset(
    b"return not and or in is import from as if elif while for with yield await lambda assert raise del global "
    b"new typeof let const var case else throw package def class fn func function async".split()
)


# A rank, what makes the right side and the brackets to leave open (when first asked for), and a text to put behind.
Way = tuple[float, Callable[[], tuple[RightSide, Target]], bytes]
Source = Callable[[], list[tuple[float, bytes]]]


class Closer:
    """Completions for one gap; what depends on the text around it alone is found once.

    ``columns`` says that blocks are columns, ``ends_inside`` that the text behind the gap begins in a string or a
    comment.
    """

    def __init__(self, sides: Sides) -> None:
        self._lexicon = lexicon = sides.right.lexicon
        self._left_text, self._left = sides.text, sides.left
        self.columns, self.ends_inside = lexicon.columns, bool(sides.right.inside)
        self._right, self._target = sides.right, sides.target
        self._sides, self._heads = sides, heads_behind(sides.right)
        self._conditionals = sides.conditionals
        left, right = sides.text, sides.right.text
        around = left[-2000:] + right[:2000]
        self._newline = b"\r\n" if b"\r\n" in around else b"\n"
        self._mark = b"\t" if re.search(rb"\n\t", around) else b" "
        self._unit = 1 if self._mark == b"\t" else 4
        # a gap that begins a line and ends before code holds whole lines
        whole_lines = not left[left.rfind(b"\n") + 1 :].strip() and not self._right.blank
        self._newline_rank = WHOLE_LINES_RANK if whole_lines else NEWLINE_RANK
        self._known: dict[bytes, Iterator[bytes]] = {}
        self._scanned: dict[bytes, Scan] = {}
        self._ways: list[Way] = [(0.0, lambda: (sides.right, sides.target), b"")]
        if lexicon.columns and self._right.margin > 1:
            # What follows is a line of its own: the fill may end as it would at a line's end, with a newline behind it.
            below = cache(lambda: (sides.right.without(0, self._newline), sides.target))
            self._ways.append((WHOLE_LINES_RANK, below, self._newline))
        if lexicon.line_comment and not self._right.blank:
            rank = COMMENT_RANK - PROSE_BONUS * self._right.prose
            self._ways.append((rank, cache(partial(self._behind_line, sides.right)), lexicon.line_comment[0]))

    def _behind_line(self, right: RightSide) -> tuple[RightSide, Target]:
        """The way over to what follows the rest of the line."""
        behind = right.without(len(right.rest))
        return behind, open_behind(self._left, behind)

    def open_ends(self, fill: bytes) -> tuple[tuple[bytes, ...], bytes]:
        """The closers of the brackets and of the string that are open behind the beginning of a fill."""
        state = self._scan(fill)
        return state.closers, state.inside

    def _scan(self, fill: bytes) -> Scan:
        """The state behind the beginning of a fill, of which there are few, and each is asked for often."""
        if fill not in self._scanned:
            self._scanned[fill] = scan(fill, self._lexicon, self._left)
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
        count, due = self._conditionals
        opened = count_open(fill, count)[0]
        if self._lexicon.conditionals and not state.inside:
            end = continued(self._in_front(fill), self._sides.right.text, due - opened)
            yield from [end] if end else []
        lines = settling(opened, due, self._newline)
        for text in islice(unseen(_in_order(self._sources(state, fill)), set()), LIMIT):
            for settled in self._settled(text, lines):
                yield with_heads(character + settled, self._heads)

    def _sources(self, state: Scan, fill: bytes) -> list[tuple[float, Source]]:
        """Where completions come from, each with the least rank that it has, in the order of these."""
        sources: list[tuple[float, Source]] = [(0.0, lambda: [(0.0, b"")] if state.inside == b"\n" else [])]
        for way, extra in product(self._ways, range(MOST_BRIDGES)):
            rank = way[0] + REOPENED_RANK * extra
            inline = partial(self._inline, state, fill, extra)
            sources.append((rank - 1.0, partial(self._over_way, way, inline)))
            below = partial(self._on_new_line, state, fill, extra)
            sources.append((rank + self._newline_rank - 0.5, partial(self._over_way, way, below)))
        return sorted(sources, key=lambda source: source[0])

    def _over_way(self, way: Way, make: Callable[[], Iterator[tuple[float, bytes]]]) -> list[tuple[float, bytes]]:
        offset, find, comment = way
        self._right, self._target = find()
        return [(offset + rank, text + comment) for rank, text in make()]

    def _settled(self, text: bytes, lines: bytes) -> list[bytes]:
        """A completion with the conditional lines that the fill lacks: in front, behind, or between its closers."""
        if not lines:
            return [text]
        below = b"" if self._right.blank else self._newline
        if not text:
            return [lines + below]
        closers = len(text) - len(text.lstrip(b"}"))
        split = [text[:count] + lines + self._newline + text[count:] for count in range(closers) if text[count:]]
        return [*split, text + lines + below] if split else [lines + self._newline + text, text + lines + below]

    def _inline(self, state: Scan, fill: bytes, extra: int) -> Iterator[tuple[float, bytes]]:
        """Completions that go on in the line behind the gap, over the bridge of this rank."""
        right = self._right
        if not extra and state.inside and right.inside and (state.inside == right.inside or len(right.inside) == 1):
            yield -1.0, b""
        for way in self._bridges(state)[extra : extra + 1]:
            for rank, text in self._over(way, state, fill):
                yield rank + REOPENED_RANK * extra, text

    def _bridges(self, state: Scan, *, statement: bool = False) -> list[Bridge]:
        stack, kept = self._target
        stale = state.stack[kept : kept + 1] == self._left.stack[kept : kept + 1]
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
        for rank, operand in enumerate(self._operands(state, fill)):
            body = operand + state.inside + way.closers
            if self._unended(state, operand, way):
                ended = operand + state.inside + way.closers.replace(b"}", lexicon.terminator + b"}", 1)
                yield rank - 0.25, ended + opening
            for tail_rank, tail in enumerate(self._tails(state, way)):
                for place, start in enumerate(openings[:OPENINGS]):
                    yield rank + tail_rank + 0.5 * place, body + tail + start
            if right.inside or way.openers:
                yield rank + 0.5, body + (b", " if right.inside else b" ") + opening
                if lexicon.terminator:
                    yield rank + 1.0, body + lexicon.terminator + b" " + opening
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
        lexicon = self._lexicon
        tails = [b"", lexicon.terminator] if lexicon.terminator else [b""]
        in_brackets = lexicon.columns and way.kept  # where no header ends
        if state.header_open and not self._right.header and not in_brackets:
            bodies = [lexicon.body] if lexicon.body else []
            if lexicon.body.startswith(b":"):
                bodies = [b":", lexicon.body] if self._block_follows(state) else [lexicon.body, b":"]
            tails = bodies + tails
        if lexicon.choice and self._right.follows_choice and (state.stack or not lexicon.columns):
            tails = [lexicon.choice, lexicon.terminator + b" " + lexicon.operand + lexicon.choice, *tails]
        return tails

    def _block_follows(self, state: Scan) -> bool:
        return bool(
            not self._right.rest.strip() and self._right.coming and self._right.coming[0].column > len(state.indent)
        )

    def _operands(self, state: Scan, fill: bytes) -> list[bytes]:
        """What finishes the expression: nothing, or an operand; the likelier one first."""
        lexicon = self._lexicon
        if state.inside:
            return [b""]
        if state.body_due is not None:
            indent = self._body_indent(state.body_due, fill)
            body = [indent + (lexicon.statement or lexicon.operand), *([indent] if indent else [])]
            return [b"", *body] if self._block_follows(state) else [*body, b""]
        if not state.last:
            cases = [b"case x:"] if self._right.cases else []
            before = self._in_front(fill)
            field = [lexicon.field] if lexicon.field and FIELDS.search(before) else []
            if lexicon.braces and UNFINISHED.search(before):
                return [lexicon.operand, b"", *field]
            return [b"", *beginnings(before, lexicon), *field, *cases, lexicon.statement or lexicon.operand]
        text = fill or self._left_text
        if lexicon.macro and CLOSURE.search(self._in_front(fill)):
            return [lexicon.operand + b"| ", b"", lexicon.operand]
        space = b" " if re.search(rb"[\w\x80-\xff]\Z", text) else self._continuation(state, fill)
        operand = space + lexicon.operand
        links = [space + link.lstrip() if space else link for link in lexicon.links]
        if state.last == b"for" and links:  # a loop's head wants two operands at once
            return [operand + lexicon.links[0], operand, b"", *links]
        if state.last == b"const":
            return [operand + INITIAL + lexicon.operand, operand, b""]
        if INITIAL + lexicon.operand in lexicon.links and CONSTANT.search(self._in_front(fill)):
            return [INITIAL + lexicon.operand, b""]
        if state.last in WANTS_OPERAND or not re.search(rb"[\w\"'`)\]}\x80-\xff;:]\Z", state.last):
            own = self._right.starts_operand
            return [b"", operand, *links] if own else [operand, b"", *links]
        return [b"", operand, *links]

    def _decorated(self, fill: bytes) -> bool:
        return self._lexicon.columns and bool(DECORATED.search(self._in_front(fill)))

    def _in_front(self, fill: bytes) -> bytes:
        """The end of a fill, with what stands in front of it."""
        return self._left_text[-REACH:] + fill

    def _continuation(self, state: Scan, fill: bytes) -> bytes:
        """What an empty line inside of brackets lacks to stand as deep as the one above.

        tree-sitter's Python grammar takes the end of an indentation for an error even there.
        """
        above, newline, line = (self._left_text[-2000:] + fill).rpartition(b"\n")
        if not (self._lexicon.columns and state.stack and newline) or line.strip():
            return b""
        above = above[above.rfind(b"\n") + 1 :]
        indent = above[: len(above) - len(above.lstrip(b" \t"))]
        return indent[len(line) :] if indent.startswith(line) else b""

    def _body_indent(self, header: bytes, fill: bytes) -> bytes:
        """The spaces that bring the current line deeper than its header."""
        text = self._left_text[-200:] + fill
        line = text[text.rfind(b"\n") + 1 :]
        wanted = header + self._mark * self._unit
        return wanted[len(line) :] if wanted.startswith(line) else b""

    def _on_new_line(self, state: Scan, fill: bytes, extra: int) -> Iterator[tuple[float, bytes]]:
        """Completions that end the statement and begin another one, which the text behind the gap goes on with."""
        right = self._right
        newline_rank = self._newline_rank if fill else NEWLINE_RANK
        if right.blank and not right.coming and not right.unmatched:
            return
        for way in self._bridges(state, statement=True)[extra : extra + 1]:
            for rank, text in self._over_lines(way, state, fill):
                yield newline_rank + rank + REOPENED_RANK * extra, text

    def _over_lines(self, way: Bridge, state: Scan, fill: bytes) -> Iterator[tuple[float, bytes]]:
        right, openers = self._right, way.openers
        heads = [(0.5 * rank, 0, head) for rank, head in enumerate(right.heads(openers, outside=not way.kept))]
        if right.margin and not openers:  # the blank before the rest of the line may serve as indentation
            heads.append((-0.5 if right.statement else 1.0, right.margin, b""))
        bare = right.blank and not openers and not right.inside
        for lead_rank, (end, lead) in enumerate(self._leads(state, fill, bare=bare)):
            if way.closers and self.columns and b"\n" not in lead and not end:
                continue  # the line is not empty any more
            operands = self._operands(state, fill) if end or lead.strip(b" \t") else [b""]
            for rank, operand in enumerate(operands):
                for head_rank, margin, head in heads:
                    start = lead[: len(lead) - margin] if lead.endswith(self._mark * margin) else lead
                    text = operand + state.inside + way.closers + end + start + head
                    yield lead_rank + rank + head_rank, text

    def _leads(self, state: Scan, fill: bytes, *, bare: bool) -> Iterator[tuple[bytes, bytes]]:
        """Ends of the statement, each with the line breaks, headers and indentation that the coming lines need.

        They are ``bare`` where nothing more is to come in the line: that the last of them indents is not needed then.
        """
        # a decorator that ends here has something to decorate
        lead = partial(self._lead, bare=bare, needs=DEFINITION if state.head.startswith(b"@") else None)
        lexicon = self._lexicon
        text = self._left_text[-4000:] + fill
        opened = open_lines(text, self._unit)
        if state.last:  # the line may have begun further up, outside of its brackets
            own = len(state.indent)
            opened = [*(line for line in opened[:-1] if line.column < own), Line(own, state.head)]
        if not lexicon.columns:
            yield lexicon.terminator, self._newline + self._mark * opened[-1].column
            return
        line = text[text.rfind(b"\n") + 1 :]
        if not line.strip() and not state.inside:
            needs = DEFINITION if self._decorated(fill) else self._right.needs
            yield b"", lead(opened, written=len(line), needs=needs)
        child = opened[-1].column + self._unit
        floor = 0 if bare else child
        if state.header_open:
            params = b"()" if state.head == b"def" and b"(" not in text[text.rfind(b"def") :] else b""
            yield params + b":", lead([*opened, Line(child, b"")], floor=floor)
            yield params + lexicon.body, lead(opened)
        else:
            if state.last == b":" and not state.stack:  # the header is whole: its block follows behind the gap
                yield b"", lead([*opened, Line(child, b"")], floor=floor)
            yield b"", lead(opened)
        if self._right.coming:  # what is open there may be of the wrong kind
            outer = [line for line in opened if line.column < self._right.coming[0].column]
            yield lexicon.body if state.header_open else b"", lead(outer or opened[:1])
        yield lexicon.body if state.header_open else b"", self._newline + self._mark * opened[-1].column

    def _lead(
        self, opened: Sequence[Line], *, written: int = -1, floor: int = 0, needs: Needs | None = None, bare: bool
    ) -> bytes:
        """The lines that lead to the text behind the gap, or to what is written in front of it.

        ``written`` is how many spaces an empty current line has.
        """
        right = self._right
        layout = lay_lines(
            opened, right.coming, header=right.header, unit=self._unit, floor=floor, needs=needs or right.needs
        )
        lead = render(layout, self._newline, self._mark)
        first = layout.lines[0][0] if layout.lines else layout.column
        if first >= written >= 0:
            lead = lead.removeprefix(self._newline)[written:]
        if bare and layout.lines and right.coming and right.coming[0].column <= layout.lines[-1][0]:
            return lead + self._lexicon.statement  # the block of the last header would else be empty
        if bare and b"\n" in lead:
            return lead[: lead.rfind(b"\n")].removesuffix(b"\r")
        return lead


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
