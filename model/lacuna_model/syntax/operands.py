"""What an unfinished expression or statement lacks in front of what closes it: an operand, a body, a case."""

import re
from functools import cached_property

from lacuna_model.syntax.balance import Sides
from lacuna_model.syntax.left_side import CLOSURE, FIELDS, REACH, UNFINISHED, beginnings
from lacuna_model.syntax.scan import Scan

# A constant without its value.
CONSTANT = re.compile(rb"\bconst\s+[\w$]+\Z")
INITIAL = b" = "
WANTS_OPERAND = frozenset(
    b"return not and or in is import from as if elif while for with yield await lambda assert raise del global "
    b"new typeof let const var case else throw package def class fn func function async".split()
)


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

    def in_front(self, fill: bytes, reach: int = REACH) -> bytes:
        """The beginning of a fill, with the end of what stands in front of it."""
        return self._text[-reach:] + fill

    def choices(self, state: Scan, fill: bytes) -> list[bytes]:
        """What finishes the expression: nothing, or an operand; the likelier one first."""
        lexicon, before = self._lexicon, self.in_front(fill)
        if state.inside:
            return [b""]
        if state.body_due is not None:
            return self._bodies(state, state.body_due, fill)
        if not state.last:
            return self._beginnings(before)
        if lexicon.macro and CLOSURE.search(before):
            return [lexicon.operand + b"| ", b"", lexicon.operand]
        space = b" " if re.search(rb"[\w\x80-\xff]\Z", fill or self._text) else self._continuation(state, fill)
        operand = space + lexicon.operand
        links = [space + link.lstrip() if space else link for link in lexicon.links]
        if state.last == b"for" and links:  # a loop's head wants two operands at once
            return [operand + lexicon.links[0], operand, b"", *links]
        if state.last == b"const":
            return [operand + INITIAL + lexicon.operand, operand, b""]
        if INITIAL + lexicon.operand in lexicon.links and CONSTANT.search(before):
            return [INITIAL + lexicon.operand, b""]
        wanted = state.last in WANTS_OPERAND or not re.search(rb"[\w\"'`)\]}\x80-\xff;:]\Z", state.last)
        if wanted and not self._right.starts_operand:
            return [operand, b"", *links]
        return [b"", operand, *links]

    def _beginnings(self, before: bytes) -> list[bytes]:
        """What a new line may begin with."""
        lexicon = self._lexicon
        field = [lexicon.field] if lexicon.field and FIELDS.search(before) else []
        if lexicon.braces and UNFINISHED.search(before):
            return [lexicon.operand, b"", *field]
        cases = [b"case x:"] if self._right.cases else []
        return [b"", *beginnings(before, lexicon), *field, *cases, lexicon.statement or lexicon.operand]

    def block_follows(self, state: Scan) -> bool:
        """Whether the text behind the gap is the block of the header that the fill ends with."""
        coming = self._right.coming
        return not self._right.rest.strip() and bool(coming) and coming[0].column > len(state.indent)

    def _bodies(self, state: Scan, header: bytes, fill: bytes) -> list[bytes]:
        """The body of a header, or what indents the one that follows."""
        indent = self._body_indent(header, fill)
        body = [indent + (self._lexicon.statement or self._lexicon.operand), *([indent] if indent else [])]
        return [b"", *body] if self.block_follows(state) else [*body, b""]

    def _body_indent(self, header: bytes, fill: bytes) -> bytes:
        """The spaces that bring the current line deeper than its header."""
        line = self.in_front(fill, 200).rpartition(b"\n")[2]
        wanted = header + self.mark * self.unit
        return wanted[len(line) :] if wanted.startswith(line) else b""

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
