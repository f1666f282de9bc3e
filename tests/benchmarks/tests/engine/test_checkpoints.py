import msgspec
from tests.benchmarks.engine import checkpoints

# As few weights as the kernels in C read.
SHAPE = msgspec.structs.replace(
    checkpoints.SHAPE, num_layers=2, hidden_size=256, intermediate_size=256, num_heads=4, vocab_size=512
)


def test_passes_over_a_text_and_over_its_slots_are_timed_in_both_forms() -> None:
    costs = checkpoints.bench_checkpoints(SHAPE, context=90, slots=4, runs=2, threads=1)
    assert [(cost.form, cost.cached, cost.rows) for cost in costs] == [
        ("8 bit", False, 94),
        ("8 bit", True, 12),
        ("float32", False, 94),
        ("float32", True, 12),
    ]
    assert all(0 < cost.ms_p50 <= cost.ms_p95 for cost in costs)
    assert costs[0].megabytes < costs[2].megabytes
    assert checkpoints.table(costs).row_count == len(costs)
