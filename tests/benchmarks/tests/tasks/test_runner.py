import json
from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.tasks.dataset import Problem
from tests.benchmarks.tasks.report import evaluate_main
from tests.benchmarks.tasks.runner import MAX_TOKENS, attempt, parses, request_for, run
from tests.benchmarks.tasks.sandbox import Sandbox
from tests.benchmarks.tasks.scores import Attempt
from tests.benchmarks.tests.fakes import Canned
from tests.benchmarks.tests.tasks.test_dataset import problem, write

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult

RIGHT, WRONG = "    y = 2 * x\n", "    y = 3 * x\n"
PROBLEMS = [problem(f"{name}/HumanEval/0/1") for name in ("SingleLineInfilling", "MultiLineInfilling")]


class Refusing:
    name = "refusing"

    def fill(self, request: InfillRequest) -> InfillResult:
        return InfillResult("no_valid_fill", request.text, (), FillStats(nfe=3), message="none found")


def test_a_request_does_not_depend_on_the_solution() -> None:
    for one in PROBLEMS:
        longer = msgspec.structs.replace(one, canonical_solution=RIGHT * 9)
        request = request_for(one)
        assert request == request_for(longer)
        assert request.text == one.prompt + one.suffix
        region = request.regions[0]
        assert region.start == region.end == len(one.prompt.encode())
        assert (region.max_tokens, region.max_lines, region.single_line) == (MAX_TOKENS[one.kind], 0, False)


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


def test_a_refusal_counts_as_a_failure_and_is_not_run() -> None:
    with Sandbox() as sandbox:
        one = attempt(PROBLEMS[0], Refusing(), sandbox)
    assert (one.passed, one.verdict, one.detail, one.nfe) == (False, "failed", "refused: none found", 3)


@pytest.mark.parametrize(
    ("source", "valid"), [("x = 1\n", True), ("x = '\\d'\n", True), ("x = (\n", False), ("x = '\0'\n", False)]
)
def test_an_invalid_program_does_not_parse(source: str, valid: bool) -> None:
    assert parses(source) is valid


def evaluate(tmp_path: Path, problems: list[Problem] = PROBLEMS, **options: object) -> None:
    data = write(tmp_path / "data.jsonl.gz", [msgspec.json.encode(one) for one in problems])
    available = {name: (lambda name=name: Canned(name, lambda *_: RIGHT)) for name in ("lacuna", "base-left")}
    evaluate_main(data, available, **options)  # type: ignore[arg-type]  # options vary by test


def test_json_is_one_object_by_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(tmp_path, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert list(printed["engines"]) == ["lacuna", "base-left"]
    assert printed["engines"]["lacuna"]["n"] == 2
    assert printed["engines"]["lacuna"]["pass_rate"] == 1.0


def test_the_table_shows_the_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    evaluate(tmp_path, engines=["base-left"])
    printed = capsys.readouterr().out
    assert "100.0% (34.2% to 100.0%)" in printed
    assert "lacuna" not in printed


def test_records_hold_one_line_per_attempt(tmp_path: Path) -> None:
    evaluate(tmp_path, records=tmp_path / "records.jsonl", limit=1)
    lines = (tmp_path / "records.jsonl").read_bytes().splitlines()
    records = [msgspec.json.decode(line, type=Attempt) for line in lines]
    assert [(one.engine, one.fill) for one in records] == [("lacuna", RIGHT), ("base-left", RIGHT)]


def test_bad_arguments_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no engine named 'gpt'; there are lacuna, base-left"):
        evaluate(tmp_path, engines=["gpt"])
    with pytest.raises(RequestError, match="cannot write records"):
        evaluate(tmp_path, records=tmp_path / "none" / "records.jsonl")
