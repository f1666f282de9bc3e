"""Judges offered edits: which of the places that an answer changes are changes of the commit, to the letter."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec
from tests.benchmarks.edits.dataset import EditCase, LineEdit, replaced
from tests.benchmarks.figures import Row, grouped, ratio, times

from lacuna_model.next_edit.tokens import TokenizedText
from lacuna_model.text import diff


class Verdict(msgspec.Struct, frozen=True):
    """The counts of one case.

    Of the ``expected`` places, ``found`` were offered with the commit's very text. ``offered`` counts all offered
    places, ``other`` those that are changes of the commit but were not expected, and ``wrong`` the rest.

    Of the characters ``written`` in offered places, ``kept`` are in the commit's text of the same lines. ``reversed``
    places undo the first change, also partly.
    """

    expected: int
    found: int
    offered: int
    other: int
    wrong: int
    written: int = 0
    kept: int = 0
    reversed: int = 0

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
    changes of the commit, *kept* that of the written characters that the commit has there, too, and *reversed* that of
    the offered places that undo the first change. Of the cases with *nothing* to follow, *silent* had no offer.
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
    nothing = [one for one in own if not one.verdict.expected]
    return {
        "cases": len(own),
        "expected": expected,
        "found": found,
        "offered": offered,
        "wrong": wrong,
        "whole": sum(one.verdict.whole for one in own),
        "recall": ratio(found, expected),
        "precision": ratio(offered - wrong, offered),
        "kept": ratio(total(lambda one: one.kept), total(lambda one: one.written)),
        "reversed": ratio(total(lambda one: one.reversed), offered),
        "nothing": len(nothing),
        "silent": sum(not one.verdict.offered for one in nothing),
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
    written = [_written(given, place) for place in places]
    kept = [_num_kept(case, given, place, new) for place, new in zip(places, written, strict=True)]
    undone = sum(_is_reversal(case, given, place) for place in places)
    wrong = len(places) - found - other
    return Verdict(len(case.expected), found, len(places), other, wrong, sum(map(_length, written)), sum(kept), undone)


def _exchanged(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """The tokens that are taken out of some lines, and those that are written."""
    before, after = (TokenizedText("\n".join(line.rstrip("\r\n") for line in lines)).texts for lines in (old, new))
    found = diff.hunks(before, after)
    taken = [text for hunk in found for text in before[hunk.start : hunk.end]]
    return taken, [text for hunk in found for text in after[hunk.new_start : hunk.new_end]]


def _written(given: Sequence[str], place: LineEdit) -> list[str]:
    return _exchanged(given[place.start : place.end], place.new)[1]


def _num_kept(case: EditCase, given: Sequence[str], place: LineEdit, written: Sequence[str]) -> int:
    """How many characters of what a place writes the commit has written there, too, in the same order."""
    others = [case.shifted(index) for index in range(len(case.edits)) if index != case.first]
    touched = [one for one in others if one.start <= place.end and place.start <= one.end]
    truly = [text for one in touched for text in _written(given, one)]
    return _length([written[own] for own, _ in diff.pairs(written, truly)])


def _is_reversal(case: EditCase, given: Sequence[str], place: LineEdit) -> bool:
    """Whether a place only takes out what the first change has written, and puts back what it has taken out."""
    first = case.edits[case.first]
    was_taken, was_written = _exchanged(case.lines[first.start : first.end], first.new)
    taken, written = _exchanged(given[place.start : place.end], place.new)
    return (
        bool(taken or written)
        and not Counter(taken) - Counter(was_written)
        and not Counter(written) - Counter(was_taken)
    )


def _length(texts: Sequence[str]) -> int:
    return sum(map(len, texts))
