"""What an unfinished expression or statement lacks in front of what closes it: an operand, a body."""

import re
from functools import cached_property

from lacuna_model.syntax.text.balance import Sides
from lacuna_model.syntax.text.scan import Scan

WANTS_OPERAND = frozenset(
    b"return not and or in is import from as if elif while for with yield await lambda assert raise del global "
    b"new typeof let const var case else throw package def class fn func function async".split()
)
WHOLE = re.compile(rb"[\w\"'`)\]}\x80-\xff;:]\Z")


class Operands:
    """What may finish the beginning of a gap's fill, by its scan; and how lines begin and end around the gap."""

    def __init__(self, sides: Sides) -> None:
        self._lexicon, self._right = sides.right.lexicon, sides.right
        self._text = sides.text
        self._around = sides.text[-2000:] + sides.right.text[:2000]

    @cached_property
    def newline(self) -> bytes:
        """What ends a line."""
        return b"\r\n" if b"\r\n" in self._around else b"\n"

    @cached_property
    def mark(self) -> bytes:
        """The character that indents."""
        return b"\t" if re.search(rb"\n\t", self._around) else b" "

    @property
    def unit(self) -> int:
        """How many of them a block is indented by."""
        return 1 if self.mark == b"\t" else 4

    def in_front(self, fill: bytes, reach: int) -> bytes:
        """The beginning of a fill, with the end of what stands in front of it."""
        return self._text[-reach:] + fill

    def choices(self, state: Scan, fill: bytes) -> list[bytes]:
        """What finishes the expression: nothing, or an operand; the likelier one first."""
        if state.inside:
            return [b""]
        if state.body_due is not None:
            return self._bodies(state, state.body_due, fill)
        if not state.last:
            return [b"", self._lexicon.statement or self._lexicon.operand]
        apart = re.search(rb"[\w\x80-\xff]\Z", self.in_front(fill, 1))
        space = b" " if apart else self._continuation(state, fill)
        operand = space + self._lexicon.operand
        links = [space + link.lstrip() if space else link for link in self._lexicon.links]
        wanted = state.last in WANTS_OPERAND or not WHOLE.search(state.last)
        return [operand, b"", *links] if wanted else [b"", operand, *links]

    def _bodies(self, state: Scan, header: bytes, fill: bytes) -> list[bytes]:
        """The body of a header, or what indents the one that follows."""
        line, wanted = self._line(fill), header + self.mark * self.unit
        indent = wanted[len(line) :] if wanted.startswith(line) else b""
        body = [indent + self._lexicon.statement, *([indent] if indent else [])]
        coming = self._right.coming
        follows = self._right.blank and bool(coming) and coming[0].column > len(state.indent)
        return [b"", *body] if follows else [*body, b""]

    def _continuation(self, state: Scan, fill: bytes) -> bytes:
        """What an empty line inside of brackets lacks to stand as deep as the one above.

        tree-sitter's Python grammar takes the end of an indentation for an error even there.
        """
        above, newline, line = self.in_front(fill, 2000).rpartition(b"\n")
        if not (self._lexicon.columns and state.stack and newline) or line.strip():
            return b""
        above = above[above.rfind(b"\n") + 1 :]
        indent = above[: len(above) - len(above.lstrip(b" \t"))]
        return indent[len(line) :] if indent.startswith(line) else b""

    def _line(self, fill: bytes) -> bytes:
        """The current line up to the end of a fill's beginning."""
        return self.in_front(fill, 200).rpartition(b"\n")[2]
