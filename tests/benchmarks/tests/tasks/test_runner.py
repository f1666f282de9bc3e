import gzip
import json
from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.tasks.dataset import Problem
from tests.benchmarks.tasks.report import evaluate_main
from tests.benchmarks.tasks.runner import run
from tests.benchmarks.tasks.sandbox import Sandbox
from tests.benchmarks.tests.fakes import Canned
from tests.benchmarks.tests.tasks.test_dataset import problem

from lacuna_model.core.errors import RequestError

RIGHT, WRONG = "    y = 2 * x\n", "    y = 3 * x\n"
PROBLEMS = [problem(f"{name}/HumanEval/0/1") for name in ("SingleLineInfilling", "MultiLineInfilling")]


def test_engines_take_turns_and_are_judged_by_the_tests() -> None:
    fillers = [
        Canned("good", lambda *_: RIGHT),
        Canned("bad", lambda *_: WRONG),
        Canned("odd", lambda *_: "    y = (\n"),
    ]
    with Sandbox() as sandbox:
        attempts = list(run(PROBLEMS, fillers, sandbox))
    assert [(one.engine, one.kind) for one in attempts] == [
        (name, kind) for kind in ("single", "multi") for name in ("good", "bad", "odd")
    ]
    assert [one.passed for one in attempts] == [True, False, False] * 2
    assert [one.exact for one in attempts] == [True, False, False] * 2
    assert [one.syntax_valid for one in attempts] == [True, True, False] * 2
    assert all(one.ms >= 0 for one in attempts)


def evaluate(tmp_path: Path, problems: list[Problem] = PROBLEMS, **options: object) -> None:
    data = tmp_path / "data.jsonl.gz"
    data.write_bytes(gzip.compress(b"\n".join(msgspec.json.encode(one) for one in problems)))
    available = {name: (lambda name=name: Canned(name, lambda *_: RIGHT)) for name in ("lacuna", "base-left")}
    evaluate_main(data, available, **options)  # type: ignore[arg-type]  # options vary by test


def test_json_is_one_object_by_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(tmp_path, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert list(printed["engines"]) == ["lacuna", "base-left"]
    assert printed["engines"]["lacuna"]["n"] == 2
    assert printed["engines"]["lacuna"]["pass_rate"] == 1.0


def test_bad_arguments_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no engine named 'gpt'; there are lacuna, base-left"):
        evaluate(tmp_path, engines=["gpt"])
    with pytest.raises(RequestError, match="cannot write records"):
        evaluate(tmp_path, records=tmp_path / "none" / "records.jsonl")
