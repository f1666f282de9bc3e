"""Judges offered edits: which of the places that an answer changes are changes of the commit, to the letter."""

from collections.abc import Iterator, Sequence

import msgspec
from tests.benchmarks.edits.dataset import EditCase, LineEdit, replaced

from lacuna_model.text import diff


class Verdict(msgspec.Struct, frozen=True):
    """The counts of one case.

    Of the ``expected`` places, ``found`` were offered with the commit's very text. ``offered`` counts all offered
    places, ``other`` those that are changes of the commit but were not expected, and ``wrong`` the rest.
    """

    expected: int
    found: int
    offered: int
    other: int
    wrong: int

    @property
    def whole(self) -> bool:
        """Whether all expected places were found and nothing wrong was offered."""
        return self.found == self.expected and not self.wrong


def line_edits(before: Sequence[str], after: Sequence[str]) -> Iterator[LineEdit]:
    """Yields the places in which two texts differ, as changes of the lines of ``before``."""
    for hunk in diff.hunks(before, after):
        yield LineEdit(hunk.start, hunk.end, list(after[hunk.new_start : hunk.new_end]))


def judge(case: EditCase, offered: Sequence[str]) -> Verdict:
    """Returns the counts for an answer that turns the lines ``case.after_first`` into the lines ``offered``."""
    given = case.after_first
    truths = {index: replaced(given, case.shifted(index)) for index in range(len(case.edits)) if index != case.first}
    hits: set[int] = set()
    places = list(line_edits(given, offered))
    for place in places:
        result = replaced(given, place)
        hits |= {index for index, truth in truths.items() if truth == result}
    found = len(hits & set(case.expected))
    other = len(hits) - found
    return Verdict(len(case.expected), found, len(places), other, len(places) - found - other)
