"""Several lines cut out of one solution, filled together and one by one."""

from tests.benchmarks.tasks.dataset import Problem
from tests.benchmarks.tasks.sandbox import Sandbox
from tests.benchmarks.tasks.several import ONE_BY_ONE, TOGETHER, measure, several, summarise, table

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
    """Fills every gap with the line that is missing there; with ``wrong``, every gap with ``pass``."""

    name = "knows"

    def __init__(self, *, wrong: bool = False) -> None:
        self.requests: list[InfillRequest] = []
        self._wrong = wrong

    def fill(self, request: InfillRequest) -> InfillResult:
        self.requests.append(request)
        fills = [] if self._wrong else [self._line(request, index) for index in range(len(request.regions))]
        fills = fills or ["    pass\n"] * len(request.regions)
        return InfillResult("ok", tuple(fills), FillStats(nfe=2, tokens=3))

    @staticmethod
    def _line(request: InfillRequest, index: int) -> str:
        before = request.text.encode()[: request.regions[index].start].decode()
        missing = [line for line in LINES if line not in request.text]
        return missing[index] if "y = x" in before or index else missing[0]


def test_fills_made_together_and_one_by_one_are_judged_by_the_tests() -> None:
    solutions = several(PROBLEMS, 2)
    knows = Solver()
    with Sandbox() as sandbox:
        outcomes = list(measure(solutions, knows, sandbox))
        wrong = list(measure(solutions, Solver(wrong=True), sandbox))
    assert [(one.way, one.passed, one.valid) for one in outcomes] == [(TOGETHER, True, True), (ONE_BY_ONE, True, True)]
    assert [len(request.regions) for request in knows.requests] == [2, 1, 1]
    assert knows.requests[2].text == "".join(LINES[:3])  # the first gap is filled, the second still empty
    assert not any(one.passed for one in wrong)
    together, one_by_one = summarise(outcomes)
    assert (together.passed, together.nfe, one_by_one.nfe, one_by_one.tokens) == (1, 2, 4, 6)
    assert (together.longest, one_by_one.longest) == (2, 2)
    assert table([together, one_by_one], 2).row_count == 2
