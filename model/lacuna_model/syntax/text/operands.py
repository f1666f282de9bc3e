"""The operand or body that an unfinished expression or statement needs before its closers."""

import re
from functools import cached_property

from lacuna_model.syntax.text.balance import Sides
from lacuna_model.syntax.text.scan import Scan
from lacuna_model.text.lines import indentation

WANTS_OPERAND = frozenset(
    b"return not and or in is import from as if elif while for with yield await lambda assert raise del global "
    b"new typeof let const var case else throw package def class fn func function async".split()
)

WHOLE = re.compile(rb"[\w\"'`)\]}\x80-\xff;:]\Z")


class Operands:
    """Texts that complete the beginning of a gap's fill, and the line end and indentation around the gap."""

    def __init__(self, sides: Sides) -> None:
        self._lexicon, self._right = sides.right.lexicon, sides.right
        self._text = sides.text
        self._around = sides.text[-2000:] + sides.right.text[:2000]

    @cached_property
    def newline(self) -> bytes:
        """The line end."""
        return b"\r\n" if b"\r\n" in self._around else b"\n"

    @cached_property
    def mark(self) -> bytes:
        """The character that indents."""
        return b"\t" if re.search(rb"\n\t", self._around) else b" "

    @property
    def unit(self) -> int:
        """The number of these characters in one level of indentation."""
        return 1 if self.mark == b"\t" else 4

    def in_front(self, fill: bytes, reach: int) -> bytes:
        """The last ``reach`` bytes before the gap and the beginning of a fill."""
        return self._text[-reach:] + fill

    def choices(self, state: Scan, fill: bytes) -> list[bytes]:
        """The ends of the expression: nothing, or an operand; the likelier one first."""
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
        """The body of a header, or the indentation of the body that follows."""
        line, wanted = self._line(fill), header + self.mark * self.unit
        indent = wanted[len(line) :] if wanted.startswith(line) else b""
        body = [indent + self._lexicon.statement, *([indent] if indent else [])]
        coming = self._right.coming
        follows = self._right.blank and bool(coming) and coming[0].column > len(state.indent)
        return [b"", *body] if follows else [*body, b""]

    def _continuation(self, state: Scan, fill: bytes) -> bytes:
        """The indentation of an empty line inside brackets, up to that of the line above.

        tree-sitter's Python grammar reports a dedent as an error even there.
        """
        above, newline, line = self.in_front(fill, 2000).rpartition(b"\n")
        if not (self._lexicon.columns and state.stack and newline) or line.strip():
            return b""
        above = above[above.rfind(b"\n") + 1 :]
        indent = indentation(above, b" \t")
        return indent[len(line) :] if indent.startswith(line) else b""

    def _line(self, fill: bytes) -> bytes:
        """The current line up to the end of a fill's beginning."""
        return self.in_front(fill, 200).rpartition(b"\n")[2]
