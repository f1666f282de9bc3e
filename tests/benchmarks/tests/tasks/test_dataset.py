import gzip
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.benchmarks.tasks.dataset import DatasetError, Problem, load_problems, spread


def problem(task_id: str = "SingleLineInfilling/HumanEval/0/L0") -> Problem:
    return Problem(
        task_id=task_id,
        entry_point="double",
        prompt="def double(x):\n",
        suffix="    return y\n",
        canonical_solution="    y = 2 * x\n",
        test="def check(candidate):\n    assert candidate(2) == 4\n",
    )


def write(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(gzip.compress(b"\n".join(lines)))
    return path


def test_problems_are_read_in_order_with_their_kinds(tmp_path: Path) -> None:
    names = ("SingleLineInfilling", "MultiLineInfilling", "RandomSpanInfilling")
    problems = [problem(f"{name}/HumanEval/0/1") for name in names]
    path = write(tmp_path / "data.jsonl.gz", [msgspec.json.encode(one) for one in problems])
    assert load_problems(path) == problems
    assert [one.kind for one in load_problems(path)] == ["single", "multi", "span"]


def test_a_program_holds_the_fill_the_tests_and_the_call() -> None:
    program = problem().program("    y = x + x\n")
    assert program == (
        "def double(x):\n    y = x + x\n    return y\n\n"
        "def check(candidate):\n    assert candidate(2) == 4\n\ncheck(double)\n"
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


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no evaluation data"):
        load_problems(tmp_path / "none.jsonl.gz")


@settings(deadline=None)  # the machine may be busy
@given(
    counts=st.tuples(*[st.integers(min_value=0, max_value=60)] * 3),
    limit=st.integers(min_value=0, max_value=200),
)
def test_a_limit_keeps_the_share_of_each_kind(counts: tuple[int, int, int], limit: int) -> None:
    names = ("SingleLineInfilling", "MultiLineInfilling", "RandomSpanInfilling")
    problems = [problem(f"{name}/{i}") for name, count in zip(names, counts, strict=True) for i in range(count)]
    chosen = spread(problems, limit)
    assert chosen == spread(problems, limit)
    assert len(chosen) == (min(limit, len(problems)) or len(problems))
    assert chosen == [one for one in problems if one in chosen]
    for name, count in zip(names, counts, strict=True):
        share = count * len(chosen) / max(1, len(problems))
        assert abs(sum(one.task_id.startswith(name) for one in chosen) - share) <= 1
