"""Runs engines over problems and judges every fill by its tests."""

import ast
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from tests.benchmarks.tasks.dataset import Kind, Problem
from tests.benchmarks.tasks.sandbox import Outcome, Sandbox
from tests.benchmarks.tasks.scores import Attempt

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, InfillResult, Region

# The token limit per kind, well above the longest solution; engines get no other information about it.
MAX_TOKENS: dict[Kind, int] = {"single": 64, "multi": 192, "span": 96}

_WARM_UP = InfillRequest(text="def add(a, b):\n    return\n", regions=(Region(25, 25, max_tokens=4),), path="add.py")


class Filler(Protocol):
    """An engine under evaluation."""

    name: str

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fills every region of the request."""
        ...


def request_for(problem: Problem) -> InfillRequest:
    """Returns the request for a problem: an empty gap, without information about the true text."""
    gap = len(problem.prompt.encode())
    region = Region(gap, gap, max_tokens=MAX_TOKENS[problem.kind])
    return InfillRequest(text=problem.document(""), regions=(region,), path="solution.py", language="python")


def parses(source: str) -> bool:
    """Whether Python's own parser accepts ``source``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape is a warning, not a syntax error
        try:
            ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def attempt(problem: Problem, filler: Filler, sandbox: Sandbox) -> Attempt:
    """Fills one problem with one engine, times it and runs its tests."""
    request = request_for(problem)
    started = time.perf_counter()
    result = filler.fill(request)
    ms = (time.perf_counter() - started) * 1000
    fill = result.fills[0] if result.fills else ""
    refused = Outcome("failed", f"refused: {result.message}")
    outcome = refused if result.status == "no_valid_fill" else sandbox.run(problem.program(fill))
    return Attempt(
        engine=filler.name,
        task_id=problem.task_id,
        kind=problem.kind,
        fill=fill,
        status=result.status,
        verdict=outcome.verdict,
        detail=outcome.detail,
        exact=fill.rstrip() == problem.canonical_solution.rstrip(),
        syntax_valid=parses(problem.document(fill)),
        tokens=result.stats.tokens,
        nfe=result.stats.nfe,
        ms=round(ms, 2),
    )


def run(problems: Sequence[Problem], fillers: Sequence[Filler], sandbox: Sandbox) -> Iterator[Attempt]:
    """Yields all attempts; the engines take turns at every problem, so that a change of the machine affects all."""
    for filler in fillers:
        filler.fill(_WARM_UP)
    for problem in problems:
        for filler in fillers:
            yield attempt(problem, filler, sandbox)


def pick(available: Mapping[str, Callable[[], Filler]], engines: Sequence[str]) -> list[Filler]:
    """Builds the engines with these names, or all if none is given; raises RequestError for an unknown name."""
    unknown = [name for name in engines if name not in available]
    if unknown:
        raise RequestError(f"no engine named {unknown[0]!r}; there are {', '.join(available)}")
    return [build() for name, build in available.items() if not engines or name in engines]
