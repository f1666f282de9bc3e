"""Finds what was changed between two versions of a text: places of lines, and exchanges of tokens within them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lacuna_model.core import work
from lacuna_model.languages.language import Language
from lacuna_model.next_edit.tokens import TokenizedText
from lacuna_model.text import diff
from lacuna_model.text.diff import Hunk
from lacuna_model.text.lines import lines_of

MAX_TOKENS = 400  # a larger change is no rule for others
MAX_COMPARED = 2_000_000  # pairs of equal items: about a second
COMPARED_NS = 400  # nominal nanoseconds: the work of a pair


def hunks(old: str, new: str) -> list[Hunk]:
    """Returns the places of lines in which two texts differ.

    Where a comparison of all lines would take long, lines that occur once in both texts are compared first, and then
    what stands between them. Where that would still take long, it is one place.
    """
    return _differing(lines_of(old, keepends=True), lines_of(new, keepends=True))


def _differing(old: Sequence[str], new: Sequence[str], *, whole: bool = True) -> list[Hunk]:
    """Returns the places in which lines differ; of those between others that are the same if they are not ``whole``."""
    lead, tail = diff.common_ends(old, new)
    old, new = old[lead : len(old) - tail], new[lead : len(new) - tail]
    if comparable(old, new):
        found = diff.hunks(old, new)
    elif whole and (anchors := diff.in_order(diff.once(old, new))):
        found, start, new_start = [], 0, 0
        for row, new_row in [*anchors, (len(old), len(new))]:
            between = _differing(old[start:row], new[new_start:new_row], whole=False)
            found += [hunk.moved(start, new_start) for hunk in between]
            start, new_start = row + 1, new_row + 1
    else:
        found = [Hunk(0, len(old), 0, len(new))]
    return [hunk.moved(lead, lead) for hunk in found]


def comparable(old: Sequence[str], new: Sequence[str]) -> bool:
    """Returns whether ``SequenceMatcher`` compares two sequences in bounded time.

    It may look at all pairs of equal items once for each run of equal items that it finds.
    """
    others = Counter(new)
    pairs = sum(others[item] for item in old) * min(len(old), len(new))
    work.spend(min(pairs, MAX_COMPARED) * COMPARED_NS)
    return pairs <= MAX_COMPARED


@dataclass(frozen=True)
class RecentChange:
    """One change: a hunk of two texts, in a ``language`` whose scopes tell variables of one name apart."""

    old: TokenizedText
    new: TokenizedText
    hunk: Hunk
    language: Language | None = None

    @classmethod
    def at(cls, old: str, new: str, row: int, language: Language | None = None) -> "RecentChange | None":
        """The change that is nearest to a line of the new text; None where the texts are the same."""
        found = hunks(old, new)
        hunk = min(found, key=lambda one: max(one.new_start - row, row - one.new_end + 1, 0), default=None)
        return cls(TokenizedText(old), TokenizedText(new), hunk, language) if hunk is not None else None

    @cached_property
    def old_span(self) -> tuple[int, int]:
        """The indexes of the hunk's tokens in the old text."""
        return _span(self.old, self.hunk.start, self.hunk.end)

    @cached_property
    def new_span(self) -> tuple[int, int]:
        """The indexes of the hunk's tokens in the new text."""
        return _span(self.new, self.hunk.new_start, self.hunk.new_end)

    @cached_property
    def lines(self) -> tuple[str, str]:
        """The old and the new lines of the hunk, without blanks at their ends."""
        hunk = self.hunk
        texts = self.old.lines[hunk.start : hunk.end], self.new.lines[hunk.new_start : hunk.new_end]
        return "".join(texts[0]).strip(), "".join(texts[1]).strip()

    @cached_property
    def exchanges(self) -> list[Hunk]:
        """The exchanges of tokens in order; none for a change of blanks alone, or one that is too large."""
        (a, b), (c, d) = self.old_span, self.new_span
        if max(b - a, d - c) > MAX_TOKENS:
            return []
        before, after = self.old.texts[a:b], self.new.texts[c:d]
        if not comparable(before, after):
            return []
        return [hunk.moved(a, c) for hunk in diff.hunks(before, after)]


def _span(tokens: TokenizedText, start: int, end: int) -> tuple[int, int]:
    """Returns the token indexes of a range of lines."""
    first = sum(map(len, tokens.lines[:start]))
    last = first + sum(map(len, tokens.lines[start:end]))
    return tokens.index_at(first), tokens.index_at(last)
