"""What a gap lies in, by the text alone, in any language: definitions, and brackets and quotes that its line closes.

The definitions are told by the indentation of the lines above the gap. The rest of its line tells where a fill would
close it, or separate something from it, a second time.
"""

import re
from dataclasses import dataclass
from typing import Literal, Self

from lacuna_model.text.lines import (
    CLOSER_OF,
    OPENER_OF,
    first_written,
    indentation,
    last_written,
    lines_up,
    step,
    unmatched,
)

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
            head = indentation(above) + " " * above.rstrip().endswith((":", "{", "(", "[")) + "x"
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
            below = self.below  # goes on in the innermost definition, or begins with its last line
            goes_on = bool(below) and (column(below) > self.headers[-1] or bool(_END.match(below.strip())))
            return "before" if goes_on else "behind"
        if text[0] in ")]}{":
            return None
        return "before" if column(line) <= self.headers[0] or defines(text) or _ABOVE.match(text) else None


def column(line: str) -> int:
    """Return the column of a line's first character that is not blank; of a blank line its length."""
    return len(indentation(line).expandtabs(TAB))


def defines(text: str) -> bool:
    """Return whether a line, without its indentation, begins a definition."""
    return len(text) <= LONGEST and _DEFINITION.match(text) is not None


QUOTES = "\"'`"
# What stands between two gaps that are values of one list.
_SEPARATORS = (",", ";")
# A string, or a character outside of strings.
_PLAIN = re.compile(r"""(["'`])(?:\\.|(?!\1)[^\\])*(?:\1|\Z)|.""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tail:
    """The bracket or quote that the rest of a gap's line begins with, which a fill must not close a second time.

    Before a comma or semicolon and the next gap, it is what separates both: the fill ends before one of its own.

    An editor closes brackets and quotes as they are opened: between ``{`` and ``}`` a model writes ``name}!``. A fill
    ``may_close`` so many brackets that it did not open: so many more are open before the gap than the rest closes.
    """

    closer: str
    may_close: int = 0
    closers: str = ""  # those that the rest begins with, in order

    @classmethod
    def of(cls, head: str, tail: str, *, gap_follows: bool = False) -> Self | None:
        """The closer between the two parts of a line; None where the rest begins with something else.

        ``gap_follows``: the next gap begins where the rest ends.
        """
        closer = tail.lstrip(" \t")[:1]
        if gap_follows and tail.strip() in _SEPARATORS and not any(head.count(quote) % 2 for quote in QUOTES):
            return cls(closer)
        if not closer or closer not in ")]}" + QUOTES:
            return None
        rest = tail.lstrip(" \t")
        closers = rest[: len(rest) - len(rest.lstrip(")]}" + QUOTES))]
        if closer in QUOTES:
            return cls(3 * closer if rest.startswith(3 * closer) else closer, 0, closers)
        opener = OPENER_OF[closer]
        opened = unmatched(char for char in head if char in (opener, closer)).count(opener)
        return cls(closer, max(opened - (len(rest) - len(rest.lstrip(closer))), 0), closers)

    def left(self, text: str) -> int | None:
        """Where a text begins to close what the rest of the line closes, if it closes the next bracket of it, too.

        ``name}!")`` between ``f"Hello {`` and ``}")`` has left the place that the gap is in; ``a} and {b`` has not.
        """
        opened, closed, first = list[str](), 0, 0
        for place, char in enumerate(text if not self.may_close and self.closer in OPENER_OF else ""):
            if char in CLOSER_OF:
                opened.append(char)
            elif opened and OPENER_OF.get(char) == opened[-1]:
                opened.pop()
            elif char == self.closers[closed] and text[place - 1 : place] != "\\":
                first = first if closed else place
                closed += 1
                if closed == min(len(self.closers), 2):
                    return first if closed == 2 else None
        return None

    def again(self, text: str) -> int | None:
        """Where a text closes what it did not open; None where it does not, or opens it again behind that."""
        if self.closer in _SEPARATORS:
            return self._beside(text)
        if (opener := OPENER_OF.get(self.closer)) is None:
            places = [match.start() for match in re.finditer(rf"(?<!\\){self.closer}", text)]
            return places[-1] if len(places) % 2 else None
        left, first = self.may_close, None
        for place, char in enumerate(text):
            left += (char == opener) - (char == self.closer)
            if left < 0 and first is None:
                first = place
        return first if left < 0 else None

    def _beside(self, text: str) -> int | None:
        """Where a text separates something else from what it began with, or closes what it did not open."""
        depth = 0
        for match in _PLAIN.finditer(text):
            char = match[0]
            if depth == 0 and (char == self.closer or char in OPENER_OF):
                return len(text[: match.start()].rstrip())
            depth += step(char)
        return None
