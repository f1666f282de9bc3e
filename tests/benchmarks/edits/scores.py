"""Sums verdicts up: by kind and language, with the times of the answers."""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from rich.table import Table
from tests.benchmarks.edits.judging import Verdict

ALL = "all"


class Answered(msgspec.Struct, frozen=True):
    """What was offered in one case: ``way`` says how it was asked for. ``ms`` is the time to the (first) answer."""

    way: str
    id: str
    kind: str
    language: str
    verdict: Verdict
    ms: float


class Scores(msgspec.Struct, frozen=True):
    """The figures of the cases of one way, kind and language; ``whole`` counts the cases that were wholly right.

    ``recall`` is the share of the expected places that were found, ``precision`` that of the offered places that are
    changes of the commit, ``kept`` that of the written characters that the commit has there, too, and ``reversed`` that
    of the offered places that undo the first change. Of the cases with ``nothing`` to follow, ``silent`` had no offer.
    """

    way: str
    kind: str
    language: str
    cases: int
    expected: int
    found: int
    offered: int
    wrong: int
    whole: int
    recall: float
    precision: float
    kept: float
    reversed: float
    nothing: int
    silent: int
    ms_p50: float
    ms_p95: float


def summarise(answered: Sequence[Answered]) -> list[Scores]:
    """Returns the figures of every way and kind, for all languages together and for each."""
    rows = []
    for way in dict.fromkeys(one.way for one in answered):
        for kind in dict.fromkeys(one.kind for one in answered):
            own = [one for one in answered if (one.way, one.kind) == (way, kind)]
            languages = sorted({one.language for one in own})
            for language in (ALL, *languages) if len(languages) > 1 else languages:
                rows.append(_scores(way, kind, language, [one for one in own if language in (ALL, one.language)]))
    return rows


def _scores(way: str, kind: str, language: str, own: Sequence[Answered]) -> Scores:
    def total(count: Callable[[Verdict], int]) -> int:
        return sum(count(one.verdict) for one in own)

    expected, found = total(lambda v: v.expected), total(lambda v: v.found)
    offered, wrong = total(lambda v: v.offered), total(lambda v: v.wrong)
    p50, p95 = (float(np.percentile([one.ms for one in own], share)) for share in (50, 95))
    written, nothing = total(lambda v: v.written), [one for one in own if not one.verdict.expected]
    return Scores(
        way,
        kind,
        language,
        len(own),
        expected,
        found,
        offered,
        wrong,
        total(lambda v: int(v.whole)),
        round(found / expected, 3) if expected else 0.0,
        round((offered - wrong) / offered, 3) if offered else 0.0,
        round(total(lambda v: v.kept) / written, 3) if written else 0.0,
        round(total(lambda v: v.reversed) / offered, 3) if offered else 0.0,
        len(nothing),
        sum(not one.verdict.offered for one in nothing),
        round(p50, 1),
        round(p95, 1),
    )


def table(rows: Sequence[Scores]) -> Table:
    """Returns a table with one row per way, kind and language."""
    grid = Table(title="Changes that follow a change")
    for column in Scores.__struct_fields__:
        grid.add_column(column.replace("_", " "), justify="left" if column in ("way", "kind", "language") else "right")
    for row in rows:
        grid.add_row(*(value if isinstance(value, str) else f"{value:,}" for value in msgspec.structs.astuple(row)))
    return grid
