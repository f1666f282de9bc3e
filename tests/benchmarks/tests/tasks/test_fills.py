"""What engines fill is judged by the tests: alone, and several gaps together."""

from pathlib import Path

from tests.benchmarks.tasks.dataset import Problem, several
from tests.benchmarks.tasks.fills import Answer, Evaluation, Filler, Question, measure, rows

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult

LINES = ["def double(x):\n", "    y = x\n", "    y = y + x\n", "    return y\n"]
TEST = "def check(candidate):\n    assert candidate(2) == 4\n"
PROBLEMS = [
    Problem(
        f"SingleLineInfilling/HumanEval/0/L{at}", "double", "".join(LINES[:at]), "".join(LINES[at + 1 :]), line, TEST
    )
    for at, line in enumerate(LINES)
    if at
]


def filler(name: str, *fills: str) -> Filler:
    """Fills every gap with the next of these texts; without any, with the next line that is missing."""

    def fill(request: InfillRequest) -> InfillResult:
        missing = fills or [line for line in LINES if line not in request.text] or [""]
        return InfillResult("ok", tuple(missing[: len(request.regions)]), FillStats(nfe=2, steps=2, tokens=3))

    return Filler(name, fill)


def measured(questions: list[Question], *fillers: Filler, path: Path | None = None) -> list[Answer]:
    return measure(questions, fillers, path, Evaluation("model", "all"))


def test_engines_take_turns_and_what_is_recorded_is_not_filled_again(tmp_path: Path) -> None:
    asked = [one.question() for one in PROBLEMS[:2]]
    engines = filler("good"), filler("bad", "    y = 3 * x\n"), filler("odd", "    y = (\n")
    found = measured(asked, *engines, path=tmp_path / "records")
    assert [(one.engine, one.name[-1]) for one in found] == [(one.name, at) for at in "12" for one in engines]
    figures = [(row["engine"], row["n"], row["passed"], row["exact"], row["parse"]) for row in rows(found)]
    assert figures == [("good", 2, 2, 2, 2), ("bad", 2, 0, 0, 2), ("odd", 2, 0, 0, 0)]
    assert measured(asked, filler("good", "!"), path=tmp_path / "records") == found


def test_several_gaps_are_filled_together() -> None:
    asked = several(PROBLEMS, 2)
    assert len(asked[0].request.regions) == 2
    right, wrong = rows(measured(asked, filler("a"), filler("b", "    pass\n", "")))
    assert [(one["passed"], one["passes"]) for one in (right, wrong)] == [(1, 2), (0, 2)]
