"""The definitions that a gap lies in, by the indentation of the lines above it: no parse, in any language."""

import re
from dataclasses import dataclass
from typing import Literal, Self

from lacuna_model.text.lines import first_written, indentation, last_written, lines_up

TAB = 4  # columns
_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|unsafe|override|open|virtual"
    r"|inline|const|extern|suspend|data|sealed|partial|readonly|declare|local|pub(?:\([^)]*\))?)\s+)*"
)
_WORDS = (
    r"(?:(?:def|func|function|fn|fun)\b\s*[\w(*\[<{]|(?:class|impl|trait|interface|struct|enum|module|namespace|object|record"
    r"|type|sub|union|protocol|extension)\b(?:\s+[\w\"'`<{]|<))"
)
# A name with parameters before a brace, as methods and functions of C have it.
_BEFORE_BRACE = (
    r"(?!(?:if|for|foreach|while|until|unless|switch|select|catch|try|else|elif|return|do|with|using|match|lock|when|defer|go"
    r"|await|yield|new|throw|case|guard|synchronized)\b)"
)
_METHOD = _BEFORE_BRACE + r"[\w<>\[\],*&:~ ]+\([^;=]*\)[^;=]*\{$"
_ARROW = r"(?:const|let|var)\s+\w+\s*=.*=>\s*\{$"
_DEFINITION = re.compile(rf"{_MODIFIERS}(?:{_WORDS}|{_ARROW}|{_METHOD})")
LONGEST = 300  # characters of a line that may be a header
# What may stand above a definition: an annotation, a comment.
_ABOVE = re.compile(r"@\w|#(?!\s*(?:if|el|end|def|inc|undef|pragma))|//|/\*|\*/|--")
_END = re.compile(r"\}[)\];,]*$|end$")

Leaving = Literal["before", "behind"]


@dataclass(frozen=True, slots=True)
class EnclosingDefinitions:
    """The indentation (columns) of the ``headers`` of the definitions around a gap, outermost first.

    ``below`` is the first line of code below the gap, "" for none.
    """

    headers: tuple[int, ...] = ()
    below: str = ""

    @classmethod
    def around(cls, before: str, after: str) -> Self:
        """Return the definitions around the gap between two texts; none where the gap is between definitions."""
        start = before.rfind("\n") + 1
        head, above = before[start:], last_written(before[:start])
        if not head:  # whole lines: the gap lies where the line above does, or in the block that it opens
            head = indentation(above) + " " * opens(above) + "x"
        least, found = column(head), [column(head)] * defines(head.strip())
        for line in lines_up(before, start - 1):
            if line.strip() and column(line) < least and not _END.match(line.strip()):
                least = column(line)
                if defines(line.strip()):
                    found.append(least)
            if least == 0:
                break
        return cls(tuple(reversed(found)), first_written(after.partition("\n")[2]))

    def over(self, line: str) -> Self:
        """Return those that a line is in."""
        return type(self)(tuple(header for header in self.headers if header < column(line)), self.below)

    def left_by(self, line: str) -> Leaving | None:
        """Whether a line of a fill leaves them: a new definition beside them, or the end of the innermost one."""
        text = line.strip()
        if not text or not self.headers or column(line) > self.headers[-1]:
            return None
        if _END.match(text):
            return "before" if self._goes_on else "behind"
        if text[0] in ")]}{":
            return None
        return "before" if column(line) <= self.headers[0] or defines(text) or _ABOVE.match(text) else None

    @property
    def _goes_on(self) -> bool:
        """Whether the text below goes on in the innermost definition, or begins with its last line."""
        return bool(self.below) and (column(self.below) > self.headers[-1] or bool(_END.match(self.below.strip())))


def column(line: str) -> int:
    """Return the column of a line's first character that is not blank; of a blank line its length."""
    return len(indentation(line).expandtabs(TAB))


def defines(text: str) -> bool:
    """Return whether a line, without its indentation, begins a definition."""
    return len(text) <= LONGEST and _DEFINITION.match(text) is not None


def opens(line: str) -> bool:
    """Return whether a line opens a block."""
    return line.rstrip().endswith((":", "{", "(", "["))
