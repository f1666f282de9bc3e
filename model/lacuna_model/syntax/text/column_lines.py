"""Completions that end the statement and begin another one on a new line, where blocks are columns.

The grammar's tables hold little about columns. The columns and words of the suffix tell which blocks it needs.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from lacuna_model.syntax.text.balance import OpenBrackets, Sides
from lacuna_model.syntax.text.columns import Needs, StatementLine, lay_lines, open_lines, render
from lacuna_model.syntax.text.operands import Operands
from lacuna_model.syntax.text.scan import Scan, shared
from lacuna_model.syntax.text.suffix_text import BINARY, RightSide

REACH = 4000
DECORATED = re.compile(rb"(?:\A|\n)[ \t]*@[^\n]*\n[ \t]*\Z")
DEFINITION = Needs(b"def x():", b"def x():")


class ColumnLines:
    """Completions from the beginning of a gap's fill over line breaks to the suffix, each with its rank."""

    def __init__(self, sides: Sides, target: OpenBrackets, operands: Operands) -> None:
        self._right, self._lexicon, self._target = sides.right, sides.right.lexicon, target
        self._operands = operands

    def over(self, state: Scan, fill: bytes) -> Iterator[tuple[float, bytes]]:
        """Yield (rank, completion): each ends the statement and begins another one."""
        right, operands = self._right, self._operands
        if right.blank and not right.coming and not right.unmatched:
            return
        kept = _kept(state, self._target)
        closers = b"".join(reversed(state.closers[kept:]))
        opened = [bracket.closer for bracket in self._target.stack[kept:]]
        heads = [(0.5 * rank, 0, head) for rank, head in enumerate(_heads(right, opened))]
        if right.margin and not opened:  # the blank before the rest of the line may serve as indentation
            heads.append((-0.5 if right.statement else 1.0, right.margin, b""))
        for lead_rank, (end, lead) in enumerate(
            self._leads(state, fill, bare=right.blank and not opened and not right.inside)
        ):
            if closers and b"\n" not in lead and not end:
                continue  # the closers make the line non-empty
            finishing = operands.choices(state, fill) if end or lead.strip(b" \t") else [b""]
            for rank, operand in enumerate(finishing):
                for head_rank, margin, head in heads:
                    start = lead[: len(lead) - margin] if lead.endswith(operands.mark * margin) else lead
                    text = operand + state.inside + closers + end + start + head
                    yield lead_rank + rank + head_rank, text

    def _leads(self, state: Scan, fill: bytes, *, bare: bool) -> Iterator[tuple[bytes, bytes]]:
        """Yield ends of the statement, each with the line breaks, headers and indentation that the suffix's lines need.

        They are ``bare`` if nothing more comes in the line, so that its indentation is not needed.
        """
        # a decorator that ends here needs a definition after it
        lead = partial(self._lead, bare=bare, needs=DEFINITION if state.head.startswith(b"@") else None)
        body, unit = self._lexicon.body if state.header_open else b"", self._operands.unit
        text = self._operands.in_front(fill, REACH)
        opened = open_lines(text, unit)
        if state.last:  # the line may have begun further up, outside of its brackets
            own = len(state.indent)
            opened = [*(line for line in opened[:-1] if line.column < own), StatementLine(own, state.head)]
        line = text[text.rfind(b"\n") + 1 :]
        if not line.strip() and not state.inside:
            if DECORATED.search(text):
                yield b"", (self._operands.mark * opened[-1].column)[len(line) :] + self._lexicon.declarations[0]
            needs = DEFINITION if DECORATED.search(text) else self._right.needs
            yield b"", lead(opened, written=len(line), needs=needs)
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
        if self._right.coming:  # a block that is open there may be of the wrong kind
            outer = [line for line in opened if line.column < self._right.coming[0].column]
            yield body, lead(outer or opened[:1])
        yield body, self._operands.newline + self._operands.mark * opened[-1].column

    def _lead(
        self,
        opened: Sequence[StatementLine],
        *,
        written: int = -1,
        floor: int = 0,
        needs: Needs | None = None,
        bare: bool,
    ) -> bytes:
        """The lines between the open blocks and the suffix, or the text written before it.

        ``written`` is the number of spaces on an empty current line, ``floor`` the least column of the new statement.
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
            return lead + self._lexicon.statement  # otherwise the block of the last header would be empty
        if bare and b"\n" in lead:
            return lead[: lead.rfind(b"\n")].removesuffix(b"\r")
        return lead


def _kept(state: Scan, target: OpenBrackets) -> int:
    """The number of brackets that stay open around a new statement, none of them a parenthesis."""
    kept = shared(state.stack, target.stack)
    while kept and state.stack[kept - 1].closer in (b")", b"]"):
        kept -= 1
    return kept


def _heads(right: RightSide, closers: Sequence[bytes]) -> list[bytes]:
    """Beginnings of a statement that the rest of the line may complete, likeliest first."""
    operand, openings = right.lexicon.operand, right.openings(closers)
    if right.blank:
        return openings
    opening = operand + b"(" if closers == [b")"] else openings[0] if openings != [b""] else b""
    if right.header:
        return _header_heads(right.rest, opening, operand)
    if opening:
        return [*openings, operand + b" = " + opening]
    if BINARY.match(right.rest):
        return [operand, operand + b" = " + operand]
    if right.rest[:1] in b"([.,:":
        return [operand, b""]
    if right.rest[:1].isspace():
        return [operand + b" =", operand, b"from " + operand, operand + b"."]
    return [b"", operand + b" = ", b"from " + operand + b" ", b"raise "]


def _header_heads(rest: bytes, opening: bytes, operand: bytes) -> list[bytes]:
    """Beginnings of a header that the rest of the line may complete, likeliest first."""
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
