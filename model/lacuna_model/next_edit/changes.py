"""Finds what was changed between two versions of a text: places of lines, and exchanges of tokens within them."""

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lacuna_model.next_edit.tokens import Tokens

MOST_TOKENS = 400  # a larger change is no rule for others
MOST_COMPARED = 10_000_000


@dataclass(frozen=True, slots=True)
class Hunk:
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


def hunks(old: str, new: str) -> list[Hunk]:
    """Returns the places of lines in which two texts differ.

    Where a comparison would take long, since there are many lines alike, the most frequent ones are left out of it.
    """
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    lead = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    most = min(len(before), len(after)) - lead
    tail = next((i for i in range(most) if before[-1 - i] != after[-1 - i]), most)
    inner, outer = before[lead : len(before) - tail], after[lead : len(after) - tail]
    matcher = difflib.SequenceMatcher(None, inner, outer, autojunk=not comparable(inner, outer))
    return [Hunk(a + lead, b + lead, c + lead, d + lead) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]


def comparable(old: Sequence[str], new: Sequence[str]) -> bool:
    """Returns whether ``SequenceMatcher`` compares two sequences in bounded time.

    It may look at all pairs of equal items once for each run of equal items that it finds.
    """
    others = Counter(new)
    return sum(others[item] for item in old) * min(len(old), len(new)) <= MOST_COMPARED


def nearest(found: Sequence[Hunk], row: int) -> Hunk | None:
    """Returns the change nearest to a line of the new text."""
    return min(found, key=lambda hunk: max(hunk.new_start - row, row - hunk.new_end + 1, 0), default=None)


@dataclass(frozen=True)
class Change:
    """One change: a hunk of two texts."""

    old: Tokens
    new: Tokens
    hunk: Hunk

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
        if max(b - a, d - c) > MOST_TOKENS:
            return []
        before, after = self.old.texts[a:b], self.new.texts[c:d]
        if not comparable(before, after):
            return []
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        found = [Op(i + a, j + a, k + c, m + c) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]
        return [op for op in found if not self._only_moves(op)]

    def _only_moves(self, op: Op) -> bool:
        return self.old.texts[op.start : op.end] == self.new.texts[op.new_start : op.new_end]


def _span(tokens: Tokens, start: int, end: int) -> tuple[int, int]:
    """Returns the token indexes of a range of lines."""
    lines = tokens.text.splitlines(keepends=True)
    first = sum(map(len, lines[:start]))
    last = first + sum(map(len, lines[start:end]))
    return tokens.index_at(first), tokens.index_at(last)
