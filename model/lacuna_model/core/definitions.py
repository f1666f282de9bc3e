"""The definitions that a gap lies in, by the indentation of the lines above it: no parse, in any language."""

import re
from dataclasses import dataclass
from typing import Literal, Self

NOWHERE = -1
TAB = 4  # columns
_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|unsafe|override|open|virtual"
    r"|inline|const|extern|suspend|data|sealed|partial|readonly|declare|local|pub(?:\([^)]*\))?)\s+)*"
)
_WORDS = (
    r"(?:def|class|func|function|fn|fun|impl|trait|interface|struct|enum|module|namespace|object|record|type|sub|union"
    r"|protocol|extension)\b"
)
# A name with parameters before a brace, as methods and functions of C have it.
_BEFORE_BRACE = r"(?!(?:if|for|foreach|while|switch|catch|else|return|do|with|using|match|lock|when|synchronized)\b)"
_METHOD = _BEFORE_BRACE + r"[\w<>\[\],*&:~ ]+\([^;=]*\)[^;=]*\{$"
_ARROW = r"(?:const|let|var)\s+\w+\s*=.*=>\s*\{$"
_DEFINITION = re.compile(rf"{_MODIFIERS}(?:{_WORDS}|{_ARROW}|{_METHOD})")
LONGEST = 300  # characters of a line that may be a header
# What may stand above a definition: an annotation, a comment.
_ABOVE = re.compile(r"@\w|#(?!\s*(?:if|el|end|def|inc|undef|pragma))|//|/\*|\*/|--")
_END = re.compile(r"\}[)\];,]*$|end$")

Leaving = Literal["before", "behind"]


@dataclass(frozen=True, slots=True)
class Definitions:
    """The indentation (columns) of the headers of the outermost and innermost definition around a gap.

    ``closed``: the text after the gap goes on in the innermost one, or begins with its last line.
    """

    outer: int = NOWHERE
    inner: int = NOWHERE
    closed: bool = False

    @classmethod
    def around(cls, before: str, after: str) -> Self:
        """Return the definitions around the gap between two texts; none where the gap is between definitions."""
        *lines, head = before.split("\n")
        above = next((line for line in reversed(lines) if line.strip()), "")
        if not head:  # whole lines: the gap lies where the line above does, or in the block that it opens
            head = above[: len(above) - len(above.lstrip())] + " " * opens(above) + "x"
        least, found = column(head), list[int]()
        for line in reversed(lines):
            if line.strip() and column(line) < least and not _END.match(line.strip()):
                least = column(line)
                if _defines(line.strip()):
                    found.append(least)
            if least == 0:
                break
        if not found:
            return cls()
        below = next((line for line in after.split("\n")[1:] if line.strip()), "")
        goes_on = bool(below) and (column(below) > found[0] or bool(_END.match(below.strip())))
        return cls(found[-1], found[0], goes_on)

    def left_by(self, line: str) -> Leaving | None:
        """Whether a line of a fill leaves them: a new definition beside them, or the end of the innermost one."""
        text = line.strip()
        if not text or self.inner == NOWHERE or column(line) > self.inner:
            return None
        if _END.match(text):
            return "before" if self.closed else "behind"
        if text[0] in ")]}":
            return None
        outside = column(line) <= self.outer
        return "before" if outside or _defines(text) or _ABOVE.match(text) else None


def column(line: str) -> int:
    """Return the column of a line's first character that is not blank; of a blank line its length."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(TAB))


def _defines(text: str) -> bool:
    return len(text) <= LONGEST and _DEFINITION.match(text) is not None


def opens(line: str) -> bool:
    """Return whether a line opens a block."""
    return line.rstrip().endswith((":", "{", "(", "["))
