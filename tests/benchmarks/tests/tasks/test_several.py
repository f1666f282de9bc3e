"""Several lines cut out of one solution, filled together and one by one."""

from tests.benchmarks.tasks.dataset import Problem
from tests.benchmarks.tasks.several import ONE_BY_ONE, TOGETHER, measure, rows, several

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


class Solver:
    """Fills every gap with the next line that is missing, or with ``pass``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests: list[InfillRequest] = []

    def fill(self, request: InfillRequest) -> InfillResult:
        self.requests.append(request)
        missing = [line for line in LINES if line not in request.text] if self.name == "knows" else ["    pass\n"] * 2
        return InfillResult("ok", tuple(missing[: len(request.regions)]), FillStats(nfe=2, tokens=3))


def test_fills_made_together_and_one_by_one_are_judged_by_the_tests() -> None:
    knows, wrong = Solver("knows"), Solver("wrong")
    together, one_by_one, *others = measure(several(PROBLEMS, 2), [knows, wrong])
    assert [(one.way, one.passed, one.valid) for one in (together, one_by_one)] == [
        (TOGETHER, True, True),
        (ONE_BY_ONE, True, True),
    ]
    assert [len(request.regions) for request in knows.requests] == [2, 1, 1]
    assert knows.requests[2].text == "".join(LINES[:3])  # the first gap is filled, the second still empty
    assert not any(one.passed for one in others)
    figures = [
        (row["passed"], row["passes"], row["of the longest"], row["tokens"]) for row in rows([together, one_by_one])
    ]
    assert figures == [(1, 2, 2, 3), (1, 4, 2, 6)]
