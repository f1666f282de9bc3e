import gzip
from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.tasks.dataset import DatasetError, Problem, load_problems


def problem(task_id: str = "SingleLineInfilling/HumanEval/0/L0") -> Problem:
    return Problem(
        task_id=task_id,
        entry_point="double",
        prompt="def double(x):\n",
        suffix="    return y\n",
        canonical_solution="    y = 2 * x\n",
        test="def check(candidate):\n    assert candidate(2) == 4\n",
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"no gzip at all", "no gzip file"),
        (gzip.compress(msgspec.json.encode(problem()))[:-12], "damaged"),
        (gzip.compress(b'{"task_id": 1}'), "line 1"),
        (gzip.compress(msgspec.json.encode(problem()) + b"\n{"), "line 2"),
        (gzip.compress(msgspec.json.encode(problem("Other/HumanEval/0"))), "line 1"),
        (gzip.compress(b""), "no problems"),
    ],
    ids=["plain", "cut-off", "wrong-type", "broken-json", "unknown-kind", "empty"],
)
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=says):
        load_problems(path)
