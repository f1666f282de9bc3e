"""Finds what was changed between two versions of a text: places of lines, and exchanges of tokens within them."""

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lacuna_model.core import work
from lacuna_model.languages.language import Language
from lacuna_model.next_edit.tokens import TokenizedText

MAX_TOKENS = 400  # a larger change is no rule for others
MAX_COMPARED = 2_000_000  # pairs of equal items: about a second
COMPARED_NS = 400  # nominal nanoseconds: the work of a pair


@dataclass(frozen=True, slots=True)
class LineHunk:
    """The lines ``start``..``end`` of the old text became the lines ``new_start``..``new_end`` of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True)
class Op:
    """The tokens ``start``..``end`` of the old text became the tokens ``new_start``..``new_end`` of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int


def hunks(old: str, new: str) -> list[LineHunk]:
    """Returns the places of lines in which two texts differ.

    Where a comparison of all lines would take long, lines that occur once in both texts are compared first, and then
    what stands between them. Where that would still take long, it is one place.
    """
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    whole = _trimmed(before, after, LineHunk(0, len(before), 0, len(after)))
    if _is_comparable(before, after, whole):
        return _compared(before, after, whole)
    found, start, new_start = list[LineHunk](), whole.start, whole.new_start
    for row, new_row in [*_anchors(before, after, whole), (whole.end, whole.new_end)]:
        part = _trimmed(before, after, LineHunk(start, row, new_start, new_row))
        if part.start < part.end and part.new_start < part.new_end and _is_comparable(before, after, part):
            found += _compared(before, after, part)
        elif part.start < part.end or part.new_start < part.new_end:
            found.append(part)
        start, new_start = row + 1, new_row + 1
    return found


def _trimmed(before: Sequence[str], after: Sequence[str], part: LineHunk) -> LineHunk:
    """Returns a part without equal lines at its beginning and end."""
    start, end, new_start, new_end = part.start, part.end, part.new_start, part.new_end
    while start < end and new_start < new_end and before[start] == after[new_start]:
        start, new_start = start + 1, new_start + 1
    while start < end and new_start < new_end and before[end - 1] == after[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    return LineHunk(start, end, new_start, new_end)


def _is_comparable(before: Sequence[str], after: Sequence[str], part: LineHunk) -> bool:
    return comparable(before[part.start : part.end], after[part.new_start : part.new_end])


def _compared(before: Sequence[str], after: Sequence[str], part: LineHunk) -> list[LineHunk]:
    """Returns the places in which a part differs."""
    inner, outer = before[part.start : part.end], after[part.new_start : part.new_end]
    a, b = part.start, part.new_start
    ops = difflib.SequenceMatcher(None, inner, outer, autojunk=False).get_opcodes()
    return [LineHunk(i + a, j + a, k + b, m + b) for tag, i, j, k, m in ops if tag != "equal"]


def _anchors(before: Sequence[str], after: Sequence[str], part: LineHunk) -> list[tuple[int, int]]:
    """Returns the rows of lines that occur once on both sides of a part: the most of them in the same order."""
    there = _once(after, part.new_start, part.new_end)
    pairs = [(row, there[line]) for line, row in _once(before, part.start, part.end).items() if line in there]
    # The longest increasing subsequence of the new rows: ``ends`` has the last pair of the best one of each length.
    ends, new_rows, behind = list[int](), list[int](), list[int]()
    for index, (_, new_row) in enumerate(pairs):
        length = bisect_left(new_rows, new_row)
        behind.append(ends[length - 1] if length else -1)
        ends[length : length + 1], new_rows[length : length + 1] = [index], [new_row]
    found, index = list[tuple[int, int]](), ends[-1] if ends else -1
    while index >= 0:
        found.append(pairs[index])
        index = behind[index]
    return found[::-1]


def _once(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    """Returns the rows of the lines that occur once between two rows."""
    counts = Counter(lines[start:end])
    return {lines[row]: row for row in range(start, end) if counts[lines[row]] == 1}


def comparable(old: Sequence[str], new: Sequence[str]) -> bool:
    """Returns whether ``SequenceMatcher`` compares two sequences in bounded time.

    It may look at all pairs of equal items once for each run of equal items that it finds.
    """
    others = Counter(new)
    pairs = sum(others[item] for item in old) * min(len(old), len(new))
    work.spend(min(pairs, MAX_COMPARED) * COMPARED_NS)
    return pairs <= MAX_COMPARED


def nearest(found: Sequence[LineHunk], row: int) -> LineHunk | None:
    """Returns the change nearest to a line of the new text."""
    return min(found, key=lambda hunk: max(hunk.new_start - row, row - hunk.new_end + 1, 0), default=None)


@dataclass(frozen=True)
class RecentChange:
    """One change: a hunk of two texts, in a ``language`` whose scopes tell variables of one name apart."""

    old: TokenizedText
    new: TokenizedText
    hunk: LineHunk
    language: Language | None = None

    @cached_property
    def old_span(self) -> tuple[int, int]:
        """The indexes of the hunk's tokens in the old text."""
        return _span(self.old, self.hunk.start, self.hunk.end)

    @cached_property
    def new_span(self) -> tuple[int, int]:
        """The indexes of the hunk's tokens in the new text."""
        return _span(self.new, self.hunk.new_start, self.hunk.new_end)

    @cached_property
    def ops(self) -> list[Op]:
        """The exchanges of tokens in order; none for a change of blanks alone, or one that is too large."""
        (a, b), (c, d) = self.old_span, self.new_span
        if max(b - a, d - c) > MAX_TOKENS:
            return []
        before, after = self.old.texts[a:b], self.new.texts[c:d]
        if not comparable(before, after):
            return []
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        found = [Op(i + a, j + a, k + c, m + c) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]
        return [op for op in found if not self._only_moves(op)]

    def _only_moves(self, op: Op) -> bool:
        return self.old.texts[op.start : op.end] == self.new.texts[op.new_start : op.new_end]


def _span(tokens: TokenizedText, start: int, end: int) -> tuple[int, int]:
    """Returns the token indexes of a range of lines."""
    lines = tokens.text.splitlines(keepends=True)
    first = sum(map(len, lines[:start]))
    last = first + sum(map(len, lines[start:end]))
    return tokens.index_at(first), tokens.index_at(last)
