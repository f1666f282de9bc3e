"""Fills after typing, with some or all tokens of the suffix read again."""

import pytest
from tests.benchmarks.engine import suffix
from tests.benchmarks.held_out.cases import Case
from tests.model import tiny
from tests.model.fim import tiny_fim

from lacuna_model.core.params import InfillRequest, Region


def case(text: str, at: int) -> Case:
    return Case("line", "a", "a.py", InfillRequest(text, (Region(at, at),), path="a.py"), ("",))


def test_if_the_entire_suffix_is_read_again_no_fill_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suffix, "NEAR", (0, 10_000))
    bench = suffix.SuffixBench(tiny_fim.loaded())
    text = tiny.CODE * 4
    for at in (len(tiny.CODE), 2 * len(tiny.CODE) + 40):
        bench.add(case(text, at))
    rows = bench.rows()
    assert [(row.typed, row.near, row.fills) for row in rows] == [
        (typed, near, 2) for typed in suffix.TYPED for near in (0, 10_000)
    ]
    assert [row.differing for row in rows if row.near] == [0, 0]
    assert suffix.table(rows).row_count == len(rows)


def test_a_short_suffix_is_left_out() -> None:
    bench = suffix.SuffixBench(tiny_fim.loaded())
    bench.add(case(tiny.CODE, len(tiny.CODE) - 10))
    assert bench.rows() == []
