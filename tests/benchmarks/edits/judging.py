"""Judges offered edits: which of the places that an answer changes are changes of the commit, to the letter."""

from collections.abc import Callable, Iterator, Sequence

import msgspec
from tests.benchmarks.edits.dataset import EditCase, LineEdit, replaced
from tests.benchmarks.figures import Row, grouped, ratio, times

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


class Answered(msgspec.Struct, frozen=True):
    """What was offered in one case: ``way`` says how it was asked for. ``ms`` is the time to the (first) answer."""

    way: str
    id: str
    kind: str
    language: str
    verdict: Verdict
    ms: float


def rows(answered: Sequence[Answered]) -> list[Row]:
    """The figures of every way and kind, by language and for all together.

    *recall* is the share of the expected places that were found, *precision* that of the offered places that are
    changes of the commit.
    """
    result: list[Row] = []
    for way, kind in dict.fromkeys((one.way, one.kind) for one in answered):
        own = [one for one in answered if (one.way, one.kind) == (way, kind)]
        for language, group in grouped(own, lambda one: one.language).items():
            result.append({"way": way, "kind": kind, "language": language, **_figures(group)})
    return result


def _figures(own: Sequence[Answered]) -> Row:
    def total(count: Callable[[Verdict], int]) -> int:
        return sum(count(one.verdict) for one in own)

    expected, found = total(lambda one: one.expected), total(lambda one: one.found)
    offered, wrong = total(lambda one: one.offered), total(lambda one: one.wrong)
    return {
        "cases": len(own),
        "expected": expected,
        "found": found,
        "offered": offered,
        "wrong": wrong,
        "whole": sum(one.verdict.whole for one in own),
        "recall": ratio(found, expected),
        "precision": ratio(offered - wrong, offered),
        **times([one.ms for one in own]),
    }


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
