"""The benchmark of sessions at once: every number of sessions fills the same gaps with the same texts."""

import pytest
from msgspec.structs import replace
from tests.benchmarks.engine import sessions

from lacuna_model.fim.loading import LoadedFim


def test_all_rows_fill_the_same_gaps(model: LoadedFim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "CONTEXT_TOKENS", 300)
    requests = sessions.gaps(model, 3, 6, syntax=False)
    assert len({request.text for request in requests}) == 3
    done: list[None] = []
    rows = list(sessions.bench_sessions(model, requests, advance=lambda: done.append(None)))
    counts = [(1, False)] + [(count, shared) for count in sessions.SESSIONS[1:] for shared in (False, True)]
    assert [(row.sessions, row.shared) for row in rows] == counts
    assert [row.differing for row in rows] == [0] * len(rows)
    assert len(done) == 3 * len(rows)
    assert {(row.fills, row.tokens) for row in rows} == {(3, rows[0].tokens)}
    assert all(row.passes >= 3 and 0 < row.p50 <= row.p95 for row in rows)
    assert sessions.table(rows).row_count == len(rows)


def test_a_row_says_how_many_tokens_a_second_all_sessions_get(model: LoadedFim) -> None:
    (first, *_) = sessions.bench_sessions(model, sessions.gaps(model, 1, 2, syntax=False))
    assert replace(first, tokens=30, ms=500.0).tokens_a_s == 60.0
