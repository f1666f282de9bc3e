"""Minimal completions: the shortest texts between an unfinished fill and the suffix of its gap.

They complete the operand, close the open brackets, and open those that the suffix closes; where blocks are columns,
they may end the statement and begin another one on a new line. All are verified elsewhere.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product, tee
from operator import itemgetter

from lacuna_model.syntax.scan import REACH, Bracket, Scan, StatementLine, open_lines, scan, shared
from lacuna_model.syntax.sides import BINARY, Brackets, Completions, RightSide, Sides, Tags
from lacuna_model.text.lines import finish_character

WANTS_OPERAND = frozenset(
    b"return not and or in is import from as if elif while for with yield await lambda assert raise del global "
    b"new typeof let const var case else throw package def class fn func function async".split()
)

# A decorator is above, for which a definition is due.
DECORATED = re.compile(rb"(?:\A|\n)[ \t]*@[^\n]*\n[ \t]*\Z")
WHOLE = re.compile(rb"[\w\"'`)\]}\x80-\xff;:]\Z")


CLAUSES = {b"elif": b"if x:", b"else": b"if x:", b"except": b"try:", b"finally": b"try:", b"case": b"match x:"}
# What heads the block that a clause continues.
_HANDLED = (b"try", b"except")
CONTINUED = {
    b"else": (b"if", b"elif", b"for", b"while", *_HANDLED),
    b"except": _HANDLED,
    b"finally": _HANDLED,
    b"case": (b"match",),
}


def lay_lines(
    opened: Sequence[StatementLine],
    coming: Sequence[StatementLine],
    *,
    header: bool,
    unit: int,
    floor: int,
    head: bytes,
) -> list[tuple[int, bytes]]:
    """The lines between open blocks and a statement that the coming lines can follow: their columns and headers.

    The last is the statement's own. ``header`` says that this statement is itself the header of the coming block.
    ``floor`` is the statement's least column, ``unit`` the width of an indentation, ``head`` the header of a new block.
    """
    column = max(_statement_column(opened, coming, header=header, unit=unit), floor)
    blocks = {opened[-1].column: b"", **{line.column: line.word for line in opened[:-1]}}  # the word that heads each
    lines: list[tuple[int, bytes]] = []

    def write(column: int, text: bytes, word: bytes) -> None:
        lines.append((column, text))
        for inner in [known for known in blocks if known > column]:
            del blocks[inner]
        blocks[column] = word

    for open_try in reversed([line for line in opened[:-1] if line.word == b"try"]):
        follower = next((line for line in coming if line.column <= open_try.column), None)
        if follower is None or follower.column < open_try.column or follower.word not in (b"except", b"finally"):
            write(open_try.column, b"finally: pass", b"")
    for target in [*reversed(coming[1:] if header else coming), StatementLine(column, b"")]:
        if target.column not in blocks and target.column > 0:
            parent = max((known for known in blocks if known < target.column), default=0)
            write(parent, head, head.split(b" ")[0])
            blocks[target.column] = b""
        if target.word in CLAUSES and blocks.get(target.column) not in CONTINUED.get(target.word, CONTINUED[b"else"]):
            clause = CLAUSES[target.word]
            write(target.column, clause, clause.rstrip(b":"))
            blocks[target.column + unit] = b""
    return [*lines, (column, b"")]


def _statement_column(
    opened: Sequence[StatementLine], coming: Sequence[StatementLine], *, header: bool, unit: int
) -> int:
    own = opened[-1].column
    if not coming:
        return own
    following = coming[0]
    columns = [line.column for line in opened]
    if header:
        columns += [line.column for line in coming[1:]]
        return max((column for column in columns if column < following.column), default=max(following.column - unit, 0))
    if following.word in CLAUSES:
        return min((column for column in columns if column > following.column), default=following.column + unit)
    return following.column


def _heads(right: RightSide, closers: Sequence[bytes]) -> list[bytes]:
    """Beginnings of a statement that the rest of the line may complete, likeliest first."""
    operand, openings = right.lexicon.operand, right.openings(closers)
    if right.blank:
        return openings
    opening = operand + b"(" if closers == [b")"] else openings[0] if openings != [b""] else b""
    if right.header:
        is_operand = right.rest.lstrip()[:1] in (b":", b"(") or BINARY.match(right.rest)
        head = opening or (operand if is_operand else b"")
        words = (b"def", b"if", b"class") if opening else (b"if", b"for x in", b"except", b"class", b"with", b"def")
        return [word + b" " + head for word in words]
    if opening:
        return [*openings, operand + b" = " + opening]
    if BINARY.match(right.rest):
        return [operand, operand + b" = " + operand]
    if right.rest[:1] in b"([.,:":
        return [operand, b""]
    if right.rest[:1].isspace():
        return [operand + b" =", operand, b"from " + operand, operand + b"."]
    return [b"", operand + b" = ", b"from " + operand + b" ", b"raise "]


LIMIT = 96  # completions of one beginning
OPENINGS = 10
NEWLINE_RANK = 1.5
WHOLE_LINES_RANK = 0.4
ELEMENT_RANK = 1.3
# Turning the rest of a line into a comment is right if it was one, and otherwise the last resort.
COMMENT_RANK, PROSE_BONUS = 8.0, 7.5

Ranked = tuple[float, bytes]


class Closer:
    """Completions for one gap; the parts that depend only on the text around it are computed once."""

    def __init__(self, sides: Sides) -> None:
        self._sides, self._right, self._lexicon = sides, sides.right, sides.right.lexicon
        around = sides.text[-2000:] + sides.right.text[:2000]
        self._newline = b"\r\n" if b"\r\n" in around else b"\n"
        self._mark, self._unit = (b"\t", 1) if b"\n\t" in around else (b" ", 4)  # so many make an indentation
        # a gap that begins a line and ends before code holds whole lines
        self._whole_lines = not sides.text[sides.text.rfind(b"\n") + 1 :].strip() and not self._right.blank
        self._ends = [(0.0, b"")]
        if self._lexicon.line_comment and not self._right.blank:
            self._ends.append((COMMENT_RANK - PROSE_BONUS * self._right.prose, self._lexicon.line_comment[0]))
        self._known: dict[bytes, Iterator[bytes]] = {}

    def completions(self, fill: bytes) -> Iterator[bytes]:
        """Yield texts to put after the beginning of a fill, likeliest first, without duplicates.

        Every step asks for the same beginnings, so the completions are cached.
        """
        self._known[fill], found = tee(self._known.get(fill) or self._find(fill))
        return found

    def _find(self, fill: bytes) -> Iterator[bytes]:
        character, seen = finish_character(fill), set[bytes]()
        for text in _in_order(self._sources(scan(fill + character, self._lexicon, self._sides.left), fill)):
            if text not in seen:
                seen.add(text)
                yield character + text
            if len(seen) == LIMIT:
                return

    def _sources(self, state: Scan, fill: bytes) -> list[tuple[float, Iterator[Ranked]]]:
        """The sources of completions, each with the least rank that it yields, in the order of these ranks."""
        sources = [(0.0, iter([(0.0, b"")] if state.inside == b"\n" else []))]
        lines_rank = WHOLE_LINES_RANK if fill and self._whole_lines else NEWLINE_RANK
        for end_rank, end in self._ends:
            sides = self._sides.below if end else self._sides
            for place, target in enumerate(sides.targets):
                rank, given = end_rank + place, (sides.right, target, state, fill)
                sources.append((rank - 1.0, _ended(self._in_line(*given), end, rank)))
                if self._lexicon.columns:
                    rank += lines_rank
                    sources.append((rank - 0.5, _ended(self._on_lines(*given), end, rank)))
        return sorted(sources, key=itemgetter(0))

    def _in_line(self, right: RightSide, target: Brackets, state: Scan, fill: bytes) -> Iterator[Ranked]:
        """Completions that continue in the line after the gap, and leave the brackets of a target open."""
        inside = right.inside
        if state.inside and inside and (state.inside == inside or len(inside) == 1):
            yield -1.0, b""
        kept = shared(state.stack, target)
        openings = right.openings([bracket.closer for bracket in target[kept:]], outside=not kept)
        ends_header = state.header_open and not right.header and not kept
        endings = self._endings(self._closing(state.stack[kept:]), ends_header=ends_header)
        for rank, operand in enumerate(self._choices(state, fill)):
            for (ending, end_rank), (place, opening) in product(endings.items(), enumerate(openings[:OPENINGS])):
                yield rank + end_rank + 0.5 * place, operand + state.inside + ending + opening

    def _choices(self, state: Scan, fill: bytes) -> list[bytes]:
        """The ends of the expression: nothing, or an operand; the likelier one first."""
        if state.inside:
            return [b""]
        if state.body_due is not None:
            return self._bodies(state, state.body_due, fill)
        if not state.last:
            return [b"", self._lexicon.statement or self._lexicon.operand]
        space = b" " if re.search(rb"[\w\x80-\xff]\Z", self._sides.text[-1:] + fill) else b""
        operand = space + self._lexicon.operand
        links = [space + link.lstrip() if space else link for link in self._lexicon.links]
        wanted = state.last in WANTS_OPERAND or not WHOLE.search(state.last)
        return [operand, b"", *links] if wanted else [b"", operand, *links]

    def _bodies(self, state: Scan, header: bytes, fill: bytes) -> list[bytes]:
        """The body of a header, or the indentation of the body that follows."""
        line, wanted = (self._sides.text[-200:] + fill).rpartition(b"\n")[2], header + self._mark * self._unit
        indent = wanted[len(line) :] if wanted.startswith(line) else b""
        body = [indent + self._lexicon.statement, *([indent] if indent else [])]
        coming = self._right.coming
        follows = self._right.blank and bool(coming) and coming[0].column > len(state.indent)
        return [b"", *body] if follows else [*body, b""]

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
        ended = own + lexicon.terminator + brace + blocks if lexicon.terminator else closers + self._newline
        elements = {closers + b",": ELEMENT_RANK} if self._right.inside or self._right.blank else {}
        return {closers: 0.0, ended: 1.0, **elements}

    def _closing(self, brackets: Sequence[Bracket]) -> bytes:
        """The closers of brackets, given outermost first, each with the text that must follow the block of its word."""
        closers = []
        for bracket in reversed(brackets):
            closers.append(bracket.closer if len(bracket.closer) == 1 else b"\n" + bracket.closer)
            if bracket.closer == b"}":
                closers.append(next((tail for word, tail in self._lexicon.tails if word in bracket.words), b""))
        return b"".join(closers)

    def _on_lines(self, right: RightSide, target: Brackets, state: Scan, fill: bytes) -> Iterator[Ranked]:
        """Completions over line breaks: each ends the statement and begins another one."""
        if right.blank and not right.coming and not right.unmatched:
            return
        kept = shared(state.stack, target)
        while kept and state.stack[kept - 1].closer in (b")", b"]"):  # no parenthesis stays open around a statement
            kept -= 1
        closers = b"".join(reversed(state.closers[kept:]))
        opened = [bracket.closer for bracket in target[kept:]]
        heads = [(0.5 * rank, 0, head) for rank, head in enumerate(_heads(right, opened))]
        if right.margin and not opened:  # the blank before the rest of the line may serve as indentation
            heads.append((-0.5 if right.statement else 1.0, right.margin, b""))
        bare = right.blank and not opened and not right.inside
        for lead_rank, (end, lead) in enumerate(self._leads(right, state, fill, bare=bare)):
            if closers and b"\n" not in lead and not end:
                continue  # the closers make the line non-empty
            finishing = self._choices(state, fill) if end or lead.strip(b" \t") else [b""]
            for rank, operand in enumerate(finishing):
                for head_rank, margin, head in heads:
                    start = lead[: len(lead) - margin] if lead.endswith(self._mark * margin) else lead
                    text = operand + state.inside + closers + end + start + head
                    yield lead_rank + rank + head_rank, text

    def _leads(self, right: RightSide, state: Scan, fill: bytes, *, bare: bool) -> Iterator[tuple[bytes, bytes]]:
        """Yield ends of the statement, each with the line breaks, headers and indentation that the suffix's lines need.

        They are ``bare`` if nothing more comes in the line, so that its indentation is not needed.
        """
        lead = partial(self._lead, right, bare=bare)
        body, unit = self._lexicon.body if state.header_open else b"", self._unit
        text = self._sides.text[-REACH:] + fill
        opened = open_lines(text, unit)
        if state.last:  # the line may have begun further up, outside of its brackets
            own = len(state.indent)
            opened = [*(line for line in opened[:-1] if line.column < own), StatementLine(own, state.head)]
        line = text[text.rfind(b"\n") + 1 :]
        if not line.strip() and not state.inside:
            if DECORATED.search(text):
                yield b"", (self._mark * opened[-1].column)[len(line) :] + self._lexicon.declarations[0]
            yield b"", lead(opened, written=len(line))
        child = opened[-1].column + unit
        floor = 0 if bare else child
        if state.header_open:
            params = b"()" if state.head == b"def" and b"(" not in text[text.rfind(b"def") :] else b""
            yield params + b":", lead([*opened, StatementLine(child, b"")], floor=floor)
            yield params + body, lead(opened)
        else:
            if state.last == b":" and not state.stack:  # the header is complete: its block follows the gap
                yield b"", lead([*opened, StatementLine(child, b"")], floor=floor)
            yield b"", lead(opened)
        if right.coming:  # a block that is open there may be of the wrong kind
            outer = [line for line in opened if line.column < right.coming[0].column]
            yield body, lead(outer or opened[:1])
        yield body, self._newline + self._mark * opened[-1].column

    def _lead(
        self, right: RightSide, opened: Sequence[StatementLine], *, written: int = -1, floor: int = 0, bare: bool
    ) -> bytes:
        """The lines between the open blocks and the suffix, or the text written before it.

        ``written`` is the number of spaces on an empty current line, ``floor`` the least column of the new statement.
        """
        lines = lay_lines(opened, right.coming, header=right.header, unit=self._unit, floor=floor, head=right.head)
        lead = b"".join(self._newline + self._mark * column + text for column, text in lines)
        if lines[0][0] >= written >= 0:
            lead = lead.removeprefix(self._newline)[written:]
        if bare and len(lines) > 1 and right.coming and right.coming[0].column <= lines[-2][0]:
            return lead + self._lexicon.statement  # otherwise the block of the last header would be empty
        if bare and b"\n" in lead:
            return lead[: lead.rfind(b"\n")].removesuffix(b"\r")
        return lead


def completions(sides: Sides) -> Completions:
    """Return what yields the completions of a gap between two sides, closing tags included."""
    closer = Closer(sides)
    if not sides.right.lexicon.tags:
        return closer.completions
    return partial(Tags(sides.text, sides.right.text).completions, others=closer.completions)


def _ended(found: Iterator[Ranked], end: bytes, rank: float) -> Iterator[Ranked]:
    """Completions with an end; after the beginning of a comment the rest of the line is part of the comment."""
    yield from ((rank + own, text + end) for own, text in found)


def _in_order(sources: Sequence[tuple[float, Iterator[Ranked]]]) -> Iterator[bytes]:
    """The texts of all sources by rank; later sources are only asked if the early texts are not enough."""
    waiting: list[Ranked] = []
    for least, source in sources:
        ready = sum(rank < least for rank, _ in waiting)
        yield from (text for _, text in waiting[:ready])
        waiting = sorted([*waiting[ready:], *source], key=itemgetter(0))
    yield from (text for _, text in waiting)
