from tests.benchmarks.records import Records
from tests.benchmarks.tasks.attempts import Attempt, measure, rows
from tests.benchmarks.tasks.dataset import Problem
from tests.benchmarks.tests.fakes import Canned

TEST = "def check(candidate):\n    assert candidate(2) == 4\n"
PROBLEMS = [
    Problem(f"{name}/HumanEval/0/1", "double", "def double(x):\n", "    return y\n", "    y = 2 * x\n", TEST)
    for name in ("SingleLineInfilling", "MultiLineInfilling")
]


def test_engines_take_turns_and_are_judged_by_the_tests() -> None:
    said = {"good": "    y = 2 * x\n", "bad": "    y = 3 * x\n", "odd": "    y = (\n"}
    fillers = [Canned(name, lambda *_, text=text: text) for name, text in said.items()]
    attempts = measure(PROBLEMS, fillers, Records(None, Attempt))
    assert [(one.engine, one.kind) for one in attempts] == [
        (name, kind) for kind in ("single", "multi") for name in said
    ]
    assert [one.passed for one in attempts] == [True, False, False] * 2
    assert [one.exact for one in attempts] == [True, False, False] * 2
    assert [one.syntax_valid for one in attempts] == [True, True, False] * 2
    figures = [(row["engine"], row["problems"], row["n"], row["passed"], row["parse"]) for row in rows(attempts)]
    assert figures[:3] == [("good", "single", 1, 1, 1), ("good", "multi", 1, 1, 1), ("good", "all", 2, 2, 2)]
    assert [row[3:] for row in figures if row[1] == "all"] == [(2, 2), (0, 2), (0, 0)]
