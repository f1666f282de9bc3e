"""The text behind a gap, as far as a completion has to lead over to it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lacuna_model.syntax.blocks import coming_lines, needs
from lacuna_model.syntax.languages import Lexicon
from lacuna_model.syntax.scan import FAR, TOP_LEVEL, Scan, open_comment, open_quote, scan, scan_brackets, string_end

WINDOW = 4000
OPENERS = {b")": b"(", b"]": b"[", b"}": b"{", b">": b"<"}
STATEMENT = re.compile(
    rb"\s*(?:@|(?:async|await|assert|break|class|continue|def|del|for|from|global|if|import|nonlocal|pass|raise|return|"
    rb"try|while|with|yield)\b)"
)
PROSE = re.compile(rb" ?[\w'`,.()-]+ [a-z'`-]+ [a-z'`,.-]+(?: [a-z]|\Z)")
BINARY = re.compile(rb"\s*(?:[-+*/%&|^<>=!?]|(?:and|or|in|is|not in|if|instanceof|as)\b)")
CHOICE = re.compile(rb"\s*(?::(?!:)|else\b)")
POSTFIX = re.compile(rb"[.(\[,]|\w")


class RightSide:
    """What stands behind a gap: the rest of its line, and which brackets and strings it closes.

    ``unmatched`` are its closers without an opener, innermost first; ``inside`` is the quote of a string that the
    text begins in; ``header`` whether the line is the header of an indented block; ``follows_choice`` whether the text
    goes on with the second half of a choice, as in ``x ? y : z``; ``after_statement`` is the text from where the
    statement closes its last bracket, ``coming`` the lines behind that and ``needs`` the blocks these must stand in.
    ``whole`` says whether all is seen that could close a bracket, which it is not in front of another gap.
    """

    def __init__(self, text: bytes, lexicon: Lexicon, *, to_the_end: bool = True) -> None:
        stop = TOP_LEVEL.search(text, 0, WINDOW) if lexicon.columns else None
        window = text[: stop.start() if stop else WINDOW]
        self._lexicon = lexicon
        self.rest = text.split(b"\n", 1)[0]
        self.inside = open_comment(text, lexicon) or open_quote(text, lexicon)
        start = string_end(window, self.inside) or 0 if self.inside else 0
        clean = window[start:]
        state = scan(clean, lexicon)
        self.whole = to_the_end
        self.unmatched = state.unmatched
        if not lexicon.columns and len(text) > WINDOW:
            self.unmatched = scan_brackets(text[start:FAR], lexicon).unmatched
            self.whole &= len(text) <= FAR
        self.after_statement = text[start + state.unmatched_end :] if lexicon.columns else text
        line = self.after_statement.split(b"\n", 1)[0]
        code = scan(line, lexicon)
        self.header = lexicon.columns and code.last == b":" and not code.stack
        self.blank = not self.rest.strip()
        self.follows_choice = bool(CHOICE.match(text))
        self.coming = coming_lines(self.after_statement)
        self.needs = needs(window)

    @property
    def statement(self) -> bool:
        """Whether the rest of the line begins as only a statement does."""
        return bool(STATEMENT.match(self.rest))

    @property
    def prose(self) -> bool:
        """Whether the rest of the line reads like the end of a comment."""
        return bool(PROSE.match(self.rest)) and not self.inside and not self.statement

    @property
    def margin(self) -> int:
        """How many spaces the rest of the line begins with, before a statement that can begin there."""
        blank = len(self.rest) - len(self.rest.lstrip(b" "))
        # An indented "if" begins a statement; one blank in front of it is what a conditional expression has.
        operator = BINARY.match(self.rest) and not (blank > 1 and self.statement)
        return blank if not self.blank and not self.inside and not operator else 0

    @property
    def starts_operand(self) -> bool:
        """Whether the rest of the line begins with an operand of its own."""
        return bool(re.match(rb"\s*[\w\"'\x80-\xff]", self.rest)) and not BINARY.match(self.rest)

    def opening(self, openers: Sequence[bytes], head: bytes = b"") -> bytes:
        """The brackets and the quote that the text behind the gap closes, with ``head`` before the innermost brace."""
        operand = self._lexicon.operand
        last_brace = max((place for place, mark in enumerate(openers) if mark == b"{"), default=-1)
        parts = []
        for place, mark in enumerate(openers):
            if mark == b"(":
                parts.append(operand)
            elif mark == b"{" and place == last_brace:
                parts.append(head)
            elif mark == b"{" and place and openers[place - 1] == b"(":
                parts.append(self._lexicon.function)  # of an argument that goes on with calls
            parts.append(mark + (b"\n" if len(mark) > 1 else b""))
        if openers and not self.inside and (self.rest[:1] == b"," or BINARY.match(self.rest)):
            parts.append(operand)
        return b"".join(parts) + self._lexicon.opener_of(self.inside)

    def block_openings(self, openers: Sequence[bytes]) -> list[bytes]:
        """The same with each head that a block may have, likeliest first."""
        if b"{" not in openers or not self._lexicon.heads:
            return [self.opening(openers)]
        return [self.opening(openers, head) for head in self._lexicon.heads]

    def heads(self, openers: Sequence[bytes]) -> list[bytes]:
        """Beginnings of a statement that the rest of the line may complete, likeliest first."""
        operand = self._lexicon.operand
        if self.blank:
            return self.block_openings(openers)
        rest, opening = self.rest, self.opening(openers)
        if self.header:
            return _header_heads(rest, opening, operand)
        if opening:
            return [*self.block_openings(openers), operand + b" = " + opening]
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


@dataclass(frozen=True, slots=True)
class Bridge:
    """The closers for what must not stay open, and the openers for what the right side closes."""

    closers: bytes
    openers: list[bytes]


def bridges(state: Scan, right: RightSide, lexicon: Lexicon, *, statement: bool = False) -> list[Bridge]:
    """Ways over from what is open on the left to what the right side closes: fewest brackets first, two at most.

    The stack is outermost first, what is unmatched innermost first; what is left of the one must mirror what is left
    of the other. For a new ``statement`` nothing but blocks may stay open. Of a side that was not seen whole the
    outer part is unknown; where even so nothing fits, the inner parts that both saw must match. The second way ends
    a block and begins another, for a block may be of the wrong kind.
    """
    inner, unmatched = list(reversed(state.stack)), right.unmatched
    found: list[Bridge] = []
    for exact in (True, False):
        for total in range(len(inner) + len(unmatched) + 1):
            for close in range(min(total, len(inner)) + 1):
                opened = total - close
                if opened > len(unmatched) or (statement and any(mark in b")]" for mark in inner[close:])):
                    continue
                kept, closed = inner[close:], unmatched[opened:]
                fits = (len(kept) <= len(closed) or not right.whole) and (len(closed) <= len(kept) or not state.whole)
                if _mirror(kept, closed) and (fits or not exact) and (not found or (close and opened)):
                    found.append(Bridge(_closing(inner[:close]), _opening(unmatched[:opened], lexicon)))
                    if len(found) == 2 or not unmatched:
                        return found
        if found:
            return found
    return [Bridge(_closing(inner), _opening(unmatched, lexicon))]


def _closing(marks: Sequence[bytes]) -> bytes:
    return b"".join(mark if len(mark) == 1 else b"\n" + mark for mark in marks)


def _opening(unmatched: Sequence[bytes], lexicon: Lexicon) -> list[bytes]:
    words = {closer: head for _, closer, head in reversed(lexicon.blocks)}
    return [OPENERS.get(mark) or words[mark] for mark in reversed(unmatched)]


def _mirror(left: Sequence[bytes], right: Sequence[bytes]) -> bool:
    """Whether what both hold, from the inside out, is the same."""
    shared = min(len(left), len(right))
    return list(left[:shared]) == list(right[:shared])
