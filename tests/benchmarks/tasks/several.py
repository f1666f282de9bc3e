"""``evaluate --data FILE --gaps N``: fills several lines of one solution together, and one by one."""

import time
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
from tests.benchmarks.figures import Row, times
from tests.benchmarks.records import Records
from tests.benchmarks.tasks.dataset import Problem
from tests.benchmarks.tasks.engines import Filler
from tests.benchmarks.tasks.sandbox import Sandbox

from lacuna_model.core import regions as region_groups
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, with_fills
from training.files import parses

TOGETHER, ONE_BY_ONE = "together", "one by one"


class Several(msgspec.Struct, frozen=True):
    """A solution with gaps: ``request`` for the engine, and the tests to append to the filled text."""

    task: str
    request: InfillRequest
    judged_by: str


class Outcome(msgspec.Struct, frozen=True):
    """The result for one solution: whether its tests passed, forward passes, tokens and milliseconds.

    ``longest`` are the passes of its longest request: of all gaps together, or of the longest gap.
    """

    engine: str
    way: str
    task: str
    passed: bool
    valid: bool
    refused: bool
    nfe: int
    longest: int
    tokens: int
    ms: float


def several(problems: Sequence[Problem], gaps: int) -> list[Several]:
    """A solution with ``gaps`` gaps for every task with enough single-line problems, evenly spread.

    Lines that follow each other are one gap, not two: a solution that has only such lines is left out.

    Raises RequestError if there is none.
    """
    by_task: dict[str, list[Problem]] = {}
    for problem in problems:
        if problem.kind == "single":
            by_task.setdefault("/".join(problem.task_id.split("/")[1:3]), []).append(problem)
    found = []
    for task, own in by_task.items():
        ordered = sorted(own, key=lambda problem: len(problem.prompt))
        if len(ordered) >= gaps:
            places = np.linspace(0, len(ordered) - 1, gaps).round().astype(int)
            cut = _cut(task, [ordered[place] for place in places])
            if all(one.start < other.start for one, other in pairwise(cut.request.regions)):
                found.append(cut)
    if not found:
        raise RequestError(f"no task has {gaps} problems of a single line with text between them")
    return found


def _cut(task: str, problems: Sequence[Problem]) -> Several:
    first = problems[0]
    text = first.document(first.canonical_solution).encode()
    spans, regions, removed = [], [], 0
    for problem in problems:
        (gap,) = problem.request.regions
        length = len(problem.canonical_solution.encode())
        spans.append(msgspec.structs.replace(gap, end=gap.start + length))
        regions.append(msgspec.structs.replace(gap, start=gap.start - removed, end=gap.start - removed))
        removed += length
    empty = with_fills(text, spans, [""] * len(spans)).decode()
    request = InfillRequest(empty, tuple(regions), path="solution.py", language="python")
    return Several(task, request, f"\n{first.test}\ncheck({first.entry_point})\n")


def measure(solutions: Sequence[Several], fillers: Sequence[Filler]) -> list[Outcome]:
    """The results of filling every solution with every engine in both ways, in turn."""
    questions = [
        (filler, solution, way) for filler in fillers for solution in solutions for way in (TOGETHER, ONE_BY_ONE)
    ]
    with Sandbox() as sandbox, Records(None, Outcome) as records:
        return records.run(
            "solutions",
            questions,
            lambda one: outcome(*one, sandbox),
            key=lambda one: (one[0].name, one[1].task, one[2]),
            answered=lambda one: (one.engine, one.task, one.way),
        )


def outcome(filler: Filler, solution: Several, way: str, sandbox: Sandbox) -> Outcome:
    """Fills the gaps of a solution in one way, and runs its tests."""
    began = time.perf_counter()
    result, stats = (_together if way == TOGETHER else _one_by_one)(solution.request, filler)
    ms = (time.perf_counter() - began) * 1e3
    text = solution.request.filled(result.fills)
    passed = result.status == "ok" and sandbox.run(text + solution.judged_by).verdict == "passed"
    judged = passed, parses(text, "python"), result.status != "ok"
    passes, tokens = [one.nfe for one in stats], sum(one.tokens for one in stats)
    return Outcome(filler.name, way, solution.task, *judged, sum(passes), max(passes), tokens, round(ms, 1))


def _together(request: InfillRequest, filler: Filler) -> tuple[InfillResult, list[FillStats]]:
    result = filler.fill(request)
    return result, [result.stats]


def _one_by_one(request: InfillRequest, filler: Filler) -> tuple[InfillResult, list[FillStats]]:
    """Fills the gaps in order, one request each, with the later gaps still empty; the stats are those of each."""
    text = request.text.encode()
    fills = [""] * len(request.regions)
    stats: list[FillStats] = []
    for index in range(len(request.regions)):
        current, own = region_groups.text_for(text, request.regions, fills, range(index, index + 1))
        result = filler.fill(msgspec.structs.replace(request, text=current.decode(), regions=tuple(own)))
        stats.append(result.stats)
        fills[index] = result.fills[0]
        if result.status != "ok":
            break
    return msgspec.structs.replace(result, fills=tuple(fills)), stats


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """The figures of every engine and way over all solutions."""
    found: list[Row] = []
    for engine, way in dict.fromkeys((one.engine, one.way) for one in outcomes):
        own = [one for one in outcomes if (one.engine, one.way) == (engine, way)]
        row: Row = {
            "engine": engine,
            "gaps": way,
            "solutions": len(own),
            "passed": sum(one.passed for one in own),
            "parse": sum(one.valid for one in own),
            "refused": sum(one.refused for one in own),
            "passes": sum(one.nfe for one in own),
            "of the longest": sum(one.longest for one in own),
            "tokens": sum(one.tokens for one in own),
        }
        found.append({**row, **times([one.ms for one in own])})
    return found
