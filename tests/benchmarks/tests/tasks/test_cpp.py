"""Spans cut out of C++ solutions, filled, compiled and tested."""

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.records import Records
from tests.benchmarks.tasks import cpp
from tests.benchmarks.tasks.dataset import DatasetError

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult

HEAD, BODY = "#include <cassert>\nint twice(int x) {\n", "    int y = x;\n    return y + x;\n}\n"
TEST = "int main() { assert(twice(2) == 4); }\n"
SOLUTION = cpp.Solution("CPP/0", HEAD, BODY, TEST)


class Solver:
    """Fills the spans with what was there, or with something else."""

    def __init__(self, name: str, gaps: int) -> None:
        self.name, self._gaps = name, gaps

    def fill(self, request: InfillRequest) -> InfillResult:
        texts, start = [], 0
        for region in request.regions:
            texts.append(request.text[start : region.start])
            start = region.start
        fills, at = list[str](), len(texts[0])
        for text in [*texts[1:], request.text[start:]]:
            end = (HEAD + BODY).index(text, at) if text.strip() else len(HEAD + BODY) - len(text)
            fills.append((HEAD + BODY)[at:end])
            at = end + len(text)
        assert len(fills) == self._gaps
        other = [] if self.name == "knows" else ["y = 3; }}"]
        return InfillResult("ok", tuple([*fills[: len(fills) - len(other)], *other]), FillStats(nfe=2, tokens=3))


@pytest.mark.parametrize("gaps", [1, 2])
def test_spans_are_filled_compiled_and_tested(gaps: int, tmp_path: Path) -> None:
    path = tmp_path / "humaneval_cpp.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps({**msgspec.to_builtins(SOLUTION), "declaration": ""}).encode()))
    assert cpp.is_cpp(path)
    assert cpp.load(path) == [SOLUTION]
    with Records(None, cpp.Outcome) as records:
        found = cpp.measure([SOLUTION], gaps, 3, [Solver("knows", gaps), Solver("wrong", gaps)], records)
    assert [(one.parses, one.compiles, one.passed) for one in found] == [(True, True, True), (False, False, False)]
    assert [(row["passed"], row["compile"], row["parse"]) for row in cpp.rows(found, gaps)] == [(1, 1, 1), (0, 0, 0)]


def test_a_program_that_does_not_end_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp, "RUNNING_S", 1)
    assert cpp.run("int main() { for (;;) {} }") == (True, False)


def test_a_program_that_leaves_early_fails() -> None:
    assert cpp.run("#include <cstdlib>\nint main() { exit(0); }") == (True, False)
    assert cpp.run("int main() { }") == (True, True)


def test_other_problems_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"task_id": "CPP/1"}\n'))
    with pytest.raises(DatasetError, match="no problems of HumanEval-X"):
        cpp.load(path)
