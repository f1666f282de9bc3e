"""Spans cut out of C++ solutions, filled, compiled and tested."""

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.tasks import cpp
from tests.benchmarks.tasks.dataset import DatasetError
from tests.benchmarks.tasks.fills import Filler, answer, rows

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult

HEAD, BODY = "#include <cassert>\nint twice(int x) {\n", "    int y = x;\n    return y + x;\n}\n"
SOLUTION = cpp.Solution("CPP/0", HEAD, BODY, "int main() { assert(twice(2) == 4); }\n")


def knows(request: InfillRequest) -> InfillResult:
    """Fills a span with what was there."""
    (region,) = request.regions
    end = len(HEAD + BODY) - (len(request.text) - region.start)
    return InfillResult("ok", ((HEAD + BODY)[region.start : end],), FillStats())


def test_spans_are_filled_compiled_and_tested(tmp_path: Path) -> None:
    path = tmp_path / "humaneval_cpp.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps({**msgspec.to_builtins(SOLUTION), "declaration": ""}).encode()))
    assert cpp.is_cpp(path)
    assert cpp.load(path) == [SOLUTION]
    assert len(cpp.cut(SOLUTION, 3, 0).request.regions) == 3
    fillers = Filler("knows", knows), Filler("wrong", lambda _: InfillResult("ok", ("y = 3; }}",), FillStats()))
    found = [answer(cpp.cut(SOLUTION, 1, 3), filler) for filler in fillers]
    assert [(row["passed"], row["compile"], row["parse"]) for row in rows(found)] == [(1, 1, 1), (0, 0, 0)]
    path.write_bytes(gzip.compress(b'{"task_id": "CPP/1"}\n'))
    with pytest.raises(DatasetError, match="no problems of HumanEval-X"):
        cpp.load(path)


def test_a_program_that_does_not_end_or_leaves_early_fails() -> None:
    assert cpp.run("int main() { for (;;) {} }", wall_s=1) == (True, False)
    assert cpp.run("#include <cstdlib>\nint main() { exit(0); }") == (True, False)
    assert cpp.run("int main() { }") == (True, True)
