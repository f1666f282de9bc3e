from tests.benchmarks.engine import passes as bench_passes

from lacuna_model.fim.loading import LoadedFim


def test_every_number_of_rows_is_timed_over_the_same_context(model: LoadedFim) -> None:
    costs = bench_passes.bench_passes(model, context_tokens=300, runs=2)
    shared = [(count, count * rows) for count in bench_passes.DOCUMENTS for rows in bench_passes.ROWS_EACH]
    alone = [(1, rows) for rows in (0, *bench_passes.ROWS)]
    assert [(cost.documents, cost.rows) for cost in costs] == [*alone, *shared]
    assert len({cost.context_tokens for cost in costs}) == 1
    assert all(0 < cost.ms_p50 <= cost.ms_p95 for cost in costs)
    assert bench_passes.table(costs).row_count == len(costs)
