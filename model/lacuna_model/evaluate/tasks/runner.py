"""Runs engines over problems and judges every fill by its tests."""

import ast
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, InfillResult, Region
from lacuna_model.evaluate.tasks.dataset import Kind, Problem
from lacuna_model.evaluate.tasks.sandbox import Outcome, Sandbox
from lacuna_model.evaluate.tasks.scores import Attempt

# All that an engine learns beside the text: a bound with room to spare over the longest solution of its kind.
MAX_TOKENS: dict[Kind, int] = {"single": 64, "multi": 192, "span": 96}

_WARM_UP = InfillRequest(text="def add(a, b):\n    return\n", regions=(Region(25, 25, max_tokens=4),), path="add.py")


class Filler(Protocol):
    """An engine under evaluation."""

    name: str

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fills every region of the request."""
        ...


def request_for(problem: Problem) -> InfillRequest:
    """The problem as every engine gets it: an empty gap, with nothing said of what stood there."""
    gap = len(problem.prompt.encode())
    region = Region(gap, gap, max_tokens=MAX_TOKENS[problem.kind])
    return InfillRequest(text=problem.document(""), regions=(region,), path="solution.py", language="python")


def parses(source: str) -> bool:
    """Whether Python's own parser takes ``source``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape is a warning to a reader, not a syntax error
        try:
            ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def attempt(problem: Problem, filler: Filler, sandbox: Sandbox) -> Attempt:
    """One engine's fill of one problem, timed and judged."""
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
    """Attempts one by one, the engines taking turns at every problem so that a drift of the machine hits all."""
    for filler in fillers:
        filler.fill(_WARM_UP)
    for problem in problems:
        for filler in fillers:
            yield attempt(problem, filler, sandbox)


def pick(available: Mapping[str, Callable[[], Filler]], engines: Sequence[str]) -> list[Filler]:
    """The engines of these names, built; all where none is named. Raises RequestError for a name nobody has."""
    unknown = [name for name in engines if name not in available]
    if unknown:
        raise RequestError(f"no engine named {unknown[0]!r}; there are {', '.join(available)}")
    return [build() for name, build in available.items() if not engines or name in engines]
