"""Where a fill ends in a text that no grammar reads: settings of unknown formats, prose, lists of names."""

from dataclasses import dataclass
from typing import Self

# What opens and closes a block of code in Markdown; a model that writes one has begun an answer about the text.
_FENCES = ("```", "~~~")
# The lines of a paragraph, at most: a list of keys has no end of its own.
MAX_LINES = 8


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Ends a fill with its line, if it begins within one, else with its paragraph.

    It ends before a fence and before a line that stands in the text already (``above``). ``in_line`` says that text
    stands before the gap on its line.
    """

    above: frozenset[str]
    in_line: bool

    @classmethod
    def after(cls, before: str) -> Self:
        """The rule for a gap after a text."""
        *lines, head = before.split("\n")
        return cls(frozenset(line.strip() for line in lines if line.strip()), bool(head.strip()))

    def end(self, text: str, *, final: bool) -> int | None:
        """How many characters of a growing text belong to the fill; None while it may go on. ``final``: it is whole."""
        lines, position, written = text.split("\n"), 0, False
        for index, line in enumerate(lines):
            complete = final or index < len(lines) - 1
            if self.in_line and index == 0:
                return len(line) if complete else None
            known = complete and line.strip() in self.above
            ends = complete and written and not line.strip()
            if line.lstrip().startswith(_FENCES) or known or ends or index == MAX_LINES:
                return position
            written = written or bool(line.strip())
            position += len(line) + 1
        return None
