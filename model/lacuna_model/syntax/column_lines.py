"""Completions on lines of their own, where blocks are columns: the statement ends, and the next one leads over.

The grammar's tables say little of columns. Which blocks the text behind a gap needs its columns and words tell.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from lacuna_model.syntax.blocks import Line, Needs, lay_lines, open_lines, render
from lacuna_model.syntax.bridges import Bridge
from lacuna_model.syntax.left_side import DECORATED, DEFINITION
from lacuna_model.syntax.operands import Operands
from lacuna_model.syntax.right_side import BINARY, RightSide
from lacuna_model.syntax.scan import Scan

NEWLINE_RANK = 1.5
WHOLE_LINES_RANK = 0.4
REACH = 4000


class ColumnLines:
    """The ways from the beginning of a gap's fill over line breaks to the text behind the gap, each with its rank."""

    def __init__(self, right: RightSide, operands: Operands, *, whole_lines: bool) -> None:
        self._right, self._lexicon, self._operands = right, right.lexicon, operands
        self._whole_lines = whole_lines

    def over(self, way: Bridge, state: Scan, fill: bytes) -> Iterator[tuple[float, bytes]]:
        """Completions that end the statement and begin another one, which the text behind the gap goes on with."""
        right, openers, operands = self._right, way.openers, self._operands
        if right.blank and not right.coming and not right.unmatched:
            return
        newline_rank = WHOLE_LINES_RANK if fill and self._whole_lines else NEWLINE_RANK
        heads = [(0.5 * rank, 0, head) for rank, head in enumerate(_heads(right, openers, outside=not way.kept))]
        if right.margin and not openers:  # the blank before the rest of the line may serve as indentation
            heads.append((-0.5 if right.statement else 1.0, right.margin, b""))
        bare = right.blank and not openers and not right.inside
        for lead_rank, (end, lead) in enumerate(self._leads(state, fill, bare=bare)):
            if way.closers and b"\n" not in lead and not end:
                continue  # the line is not empty any more
            finishing = operands.choices(state, fill) if end or lead.strip(b" \t") else [b""]
            for rank, operand in enumerate(finishing):
                for head_rank, margin, head in heads:
                    start = lead[: len(lead) - margin] if lead.endswith(operands.mark * margin) else lead
                    text = operand + state.inside + way.closers + end + start + head
                    yield newline_rank + lead_rank + rank + head_rank, text

    def _leads(self, state: Scan, fill: bytes, *, bare: bool) -> Iterator[tuple[bytes, bytes]]:
        """Ends of the statement, each with the line breaks, headers and indentation that the coming lines need.

        They are ``bare`` where nothing more is to come in the line: that the last of them indents is not needed then.
        """
        # a decorator that ends here has something to decorate
        lead = partial(self._lead, bare=bare, needs=DEFINITION if state.head.startswith(b"@") else None)
        body, unit = self._lexicon.body if state.header_open else b"", self._operands.unit
        text = self._operands.in_front(fill, REACH)
        opened = open_lines(text, unit)
        if state.last:  # the line may have begun further up, outside of its brackets
            own = len(state.indent)
            opened = [*(line for line in opened[:-1] if line.column < own), Line(own, state.head)]
        line = text[text.rfind(b"\n") + 1 :]
        if not line.strip() and not state.inside:
            needs = DEFINITION if DECORATED.search(self._operands.in_front(fill)) else self._right.needs
            yield b"", lead(opened, written=len(line), needs=needs)
        child = opened[-1].column + unit
        floor = 0 if bare else child
        if state.header_open:
            params = b"()" if state.head == b"def" and b"(" not in text[text.rfind(b"def") :] else b""
            yield params + b":", lead([*opened, Line(child, b"")], floor=floor)
            yield params + body, lead(opened)
        else:
            if state.last == b":" and not state.stack:  # the header is whole: its block follows behind the gap
                yield b"", lead([*opened, Line(child, b"")], floor=floor)
            yield b"", lead(opened)
        if self._right.coming:  # what is open there may be of the wrong kind
            outer = [line for line in opened if line.column < self._right.coming[0].column]
            yield body, lead(outer or opened[:1])
        yield body, self._operands.newline + self._operands.mark * opened[-1].column

    def _lead(
        self, opened: Sequence[Line], *, written: int = -1, floor: int = 0, needs: Needs | None = None, bare: bool
    ) -> bytes:
        """The lines that lead to the text behind the gap, or to what is written in front of it.

        ``written`` is how many spaces an empty current line has.
        """
        right, operands = self._right, self._operands
        layout = lay_lines(
            opened, right.coming, header=right.header, unit=operands.unit, floor=floor, needs=needs or right.needs
        )
        lead = render(layout, operands.newline, operands.mark)
        first = layout.lines[0][0] if layout.lines else layout.column
        if first >= written >= 0:
            lead = lead.removeprefix(operands.newline)[written:]
        if bare and layout.lines and right.coming and right.coming[0].column <= layout.lines[-1][0]:
            return lead + self._lexicon.statement  # the block of the last header would else be empty
        if bare and b"\n" in lead:
            return lead[: lead.rfind(b"\n")].removesuffix(b"\r")
        return lead


def _heads(right: RightSide, openers: Sequence[bytes], *, outside: bool) -> list[bytes]:
    """Beginnings of a statement that the rest of the line may complete, likeliest first."""
    operand, rest = right.lexicon.operand, right.rest
    if right.blank:
        return right.openings(openers, outside=outside)
    opening = right.opening(openers, outside=outside)
    if right.header:
        return _header_heads(rest, opening, operand)
    if opening:
        return [*right.openings(openers, outside=outside), operand + b" = " + opening]
    if BINARY.match(rest):
        return [operand, operand + b" = " + operand]
    if rest[:1] in b"([.,:":
        return [operand, b""]
    if rest[:1].isspace():
        return [operand + b" =", operand, b"from " + operand, operand + b"."]
    return [b"", operand + b" = ", b"from " + operand + b" ", b"raise "]


def _header_heads(rest: bytes, opening: bytes, operand: bytes) -> list[bytes]:
    """Compound headers that end as this line does."""
    word = rest.lstrip()
    if word.startswith(b":"):
        return [b"if " + operand, b"else", b"try"]
    if opening:
        return [b"def " + opening, b"if " + opening, b"for x in " + opening, b"class " + opening]
    if word.startswith((b"in ", b"in(")):
        return [b"for " + operand + b" "[len(rest) - len(word) :]]
    if word.startswith((b"as ", b"->")):
        return [b"with " + operand, b"def " + operand + b"()"]
    if word.startswith(b"("):
        return [b"def " + operand, b"if " + operand, b"class " + operand]
    space = b"" if rest[:1].isspace() else b" "
    if BINARY.match(rest):
        return [b"if " + operand]
    return [b"if" + space, b"for x in" + space, b"except" + space, b"class" + space, b"with" + space, b"def" + space]
