from pathlib import Path

from tests.benchmarks.engine.prior import AFTER, BEFORE, COMMITTED, FILL, bench_workspace, table
from tests.model import tiny

from lacuna_model.tokens.tokenizer import Tokenizer


def test_every_step_of_every_place_is_timed(tokenizer: Tokenizer, tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"# {name}\n" + tiny.CODE * (3 * (BEFORE + FILL + AFTER) // len(tiny.CODE) + 1))
    cost = bench_workspace(tokenizer, tmp_path, places=2)
    assert cost.files == 2
    assert cost.tokens > 2 * (BEFORE + FILL + AFTER)
    assert cost.steps == 2 * FILL / COMMITTED
    assert 0 < cost.step_ms_p50 <= cost.step_ms_p95
    assert table(cost).row_count > 0
