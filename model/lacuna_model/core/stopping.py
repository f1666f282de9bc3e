"""The stop rule: decides when a left-to-right model has filled a gap. Baselines use the same rule."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from lacuna_model.core.params import Region

# What a line within a block may begin with at the left edge: nothing, white space, a closing bracket.
_EDGE = ("", " ", "\t", "\r", ")", "]", "}")
# A shorter part of a line between two gaps, a comma say, does not end the first one.
LEAST_PART = 4
# A shorter rest of the gap's line, a bracket say, may stand within a line of the fill.
LEAST_REPEAT = 3


@dataclass(frozen=True, slots=True)
class LineLimit:
    """A limit of ``lines`` for a fill; ``keeps_newline``: the newline of the last line belongs to the fill."""

    lines: int
    keeps_newline: bool

    @classmethod
    def of(cls, region: Region, after: bytes) -> Self | None:
        """The limit of a region that the text ``after`` follows; None where any number of lines is allowed."""
        lines = 1 if region.single_line else region.max_lines
        return cls(lines, not region.single_line and not after.startswith((b"\n", b"\r"))) if lines else None

    def cut(self, fill: bytes) -> bytes:
        """The fill without the lines beyond the limit."""
        lines = fill.split(b"\n", self.lines)
        if len(lines) <= self.lines:
            return fill
        kept = b"\n".join(lines[: self.lines])
        return kept + b"\n" if self.keeps_newline else kept.removesuffix(b"\r")


@dataclass(frozen=True, slots=True)
class StopRule:
    """Finds the end of a fill in a growing text.

    A model that only continues text does not know where the gap ends. The fill ends where the model repeats
    ``resumes``, the first non-blank line of the text after the gap, or where it leaves the indented block that the gap
    lies in (``in_block``). A fill also ends with the last line that its region allows (``limit``). ``head`` is the text
    before the gap on the gap's first line. ``mid_line``: ``resumes`` is the rest of the gap's line, so a line of the
    fill may end with it. ``broken``: another gap interrupts that line. ``newline_follows``: the text after the gap
    begins with a newline, which ends the fill's last line.
    """

    head: str
    resumes: str
    mid_line: bool
    in_block: bool
    newline_follows: bool
    broken: bool = False
    limit: LineLimit | None = None

    @classmethod
    def between(cls, before: str, after: str, until: int | None = None, limit: LineLimit | None = None) -> Self:
        """The rule for the gap between two texts; the next gap, if any, begins ``until`` characters into ``after``."""
        head = before.rpartition("\n")[2]
        first = next((line for line in after.split("\n") if line.strip()), "")
        part = after[:until].lstrip("\n")
        broken = until is not None and first.startswith(part) and len(part.strip()) >= LEAST_PART
        resumes = (part if broken else first).rstrip()
        above = next((line for line in reversed(before.split("\n")) if line.strip()), "")
        in_block = above[:1].isspace() or above.rstrip().endswith(":")
        newline_follows = after[:1] == "\n"
        opens_line = not after or newline_follows
        mid_line = bool(resumes) and not opens_line and (bool(head.strip()) or (in_block and not resumes[0].isspace()))
        below = after.partition("\n")[2] if mid_line else after
        next_line = next((line for line in below.split("\n") if line.strip()), " ")
        return cls(head, resumes, mid_line, in_block and next_line[0].isspace(), newline_follows, broken, limit)

    def end(self, text: str, *, final: bool) -> str | None:
        """The fill where ``text`` has reached its end, else None; ``final``: no more text follows."""
        return next(self.ends(text, final=final), None)

    def ends(self, text: str, *, final: bool) -> Iterator[str]:
        """The fills where ``text`` may end, the shortest first: if one cannot be, the next one is the end.

        A line is checked once it is complete: ``return x`` may still become ``return x + 1``.
        """
        kept = self.limit.cut(text.encode()).decode() if self.limit else text
        if kept != text:
            yield from self.ends(kept, final=True)
            return
        position = 0
        lines = text.split("\n")
        for index, line in enumerate(lines):
            whole = self.head + line if index == 0 else line
            if self._leaves_block(whole, opens=index > 0 or not self.head):
                yield self._last_line_closed(_ended(text[:position], "\n"))
            if index < len(lines) - 1 or final or self._is_passed(line):
                length = self._kept(line.rstrip(), whole.rstrip())
                if length is not None:
                    yield self._last_line_closed(text[: position + length])
            position += len(line) + 1
        if final:
            yield text

    def _last_line_closed(self, text: str) -> str:
        """The text; where ``newline_follows``, without trailing white space that contains a newline."""
        return _ended(text, "") if self.newline_follows else text

    def _leaves_block(self, line: str, *, opens: bool) -> bool:
        """Whether a line begins at the left edge although the gap is indented; a closing bracket is allowed there."""
        return self.in_block and opens and line[:1] not in _EDGE

    def _kept(self, line: str, whole: str) -> int | None:
        """How many characters of a complete line belong to the fill where ``resumes`` is found in it, else None."""
        if not self.resumes:
            return None
        if self.mid_line and self.broken:
            return line.find(self.resumes) if self.resumes in line else None
        if self.mid_line:
            at_end = line.endswith(self.resumes)
            if not at_end and not self._is_passed(line):
                return None
            place = len(line) - len(self.resumes) if at_end else line.find(self.resumes)
            return None if self._closes(line, place, whole) else place
        return 0 if whole == self.resumes or (self.broken and whole.startswith(self.resumes)) else None

    def _is_passed(self, line: str) -> bool:
        """Whether a line has the rest of the gap's line, and goes on behind it."""
        return self.mid_line and len(self.resumes) >= LEAST_REPEAT and self.resumes in line[: len(line) - 1]

    def _closes(self, line: str, place: int, whole: str) -> bool:
        """Whether ``resumes`` at a ``place`` of a line closes a bracket of the fill, and is no repeat of the suffix.

        Such is the end of ``bar()`` between ``foo(`` and ``)``. ``whole`` is the line with the text before the gap.
        """
        head, own = whole[: len(whole) - len(line)], line[:place]
        cut, uncut = _open_brackets(head + own + self.resumes), _open_brackets(whole + self.resumes)
        return _open_brackets(own) > 0 and abs(cut) > abs(uncut)


def _open_brackets(line: str) -> int:
    """How many more brackets a line opens than it closes."""
    return sum((char in "([{") - (char in ")]}") for char in line)


def _ended(text: str, newline: str) -> str:
    """A text with ``newline`` in place of the white space at its end, if that contains a newline."""
    bare = text.rstrip()
    return bare + newline if "\n" in text[len(bare) :] else text


def trim_overlap(fill: str, after: str) -> str:
    """``fill`` without an end that repeats the beginning of ``after`` up to the end of one of its lines."""
    for end in reversed([match.end() for match in re.finditer(r"\n|\Z", after)]):
        repeated = after[:end]
        if repeated.strip() and fill.endswith(repeated):
            return fill[: -len(repeated)]
    return fill
