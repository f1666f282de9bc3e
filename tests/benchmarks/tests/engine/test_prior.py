from pathlib import Path

import pytest
from tests.benchmarks.engine.prior import AFTER, BEFORE, COMMITTED, FILL, bench_workspace, table
from tests.model import tiny

from lacuna_model.core.errors import RequestError
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


def test_a_folder_without_a_long_file_is_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(RequestError, match="no file has"):
        bench_workspace(tokenizer, tmp_path)
