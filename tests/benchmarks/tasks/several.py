"""The command ``evaluate --data FILE --gaps N``: fills several lines of one solution together, and one by one."""

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from rich.table import Table
from tests.benchmarks.tasks.dataset import Problem
from tests.benchmarks.tasks.runner import MAX_TOKENS, Filler, parses
from tests.benchmarks.tasks.sandbox import Sandbox

from lacuna_model.core import regions as region_groups
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region, with_fills

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

    way: str
    task: str
    passed: bool
    valid: bool
    refused: bool
    nfe: int
    longest: int
    tokens: int
    ms: float


class WayScores(msgspec.Struct, frozen=True):
    """The figures of one way over all solutions; times are in milliseconds per solution."""

    way: str
    solutions: int
    passed: int
    valid: int
    refused: int
    nfe: int
    longest: int
    tokens: int
    ms_p50: float
    ms_p95: float


def several(problems: Sequence[Problem], gaps: int) -> list[Several]:
    """Returns a solution with ``gaps`` gaps for every task with enough single-line problems, evenly spread.

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
    whole = problems[0].document(problems[0].canonical_solution).encode()
    spans = [
        Region(start, start + len(problem.canonical_solution.encode()), max_tokens=MAX_TOKENS["single"])
        for problem in problems
        for start in [len(problem.prompt.encode())]
    ]
    text, regions = _emptied(whole, spans)
    request = InfillRequest(text.decode(), tuple(regions), path="solution.py", language="python")
    first = problems[0]
    return Several(task, request, f"\n{first.test}\ncheck({first.entry_point})\n")


def _emptied(text: bytes, spans: Sequence[Region]) -> tuple[bytes, list[Region]]:
    """Returns the text without the texts of the spans, and the empty regions in their places."""
    regions, removed = [], 0
    for span in spans:
        at = span.start - removed
        regions.append(msgspec.structs.replace(span, start=at, end=at))
        removed += span.end - span.start
    return with_fills(text, spans, [""] * len(spans)), regions


def measure(solutions: Sequence[Several], filler: Filler, sandbox: Sandbox, label: str = "") -> Iterator[Outcome]:
    """Yields the results of filling every solution in both ways, in turn; ``label`` begins the names of the ways."""
    for solution in solutions:
        for way, fill in ((TOGETHER, _together), (ONE_BY_ONE, _one_by_one)):
            began = time.perf_counter()
            result, stats = fill(solution.request, filler)
            ms = (time.perf_counter() - began) * 1e3
            text = solution.request.filled(result.fills)
            passed = result.status == "ok" and sandbox.run(text + solution.judged_by).verdict == "passed"
            judged = passed, parses(text), result.status != "ok"
            passes, tokens = [one.nfe for one in stats], sum(one.tokens for one in stats)
            yield Outcome(label + way, solution.task, *judged, sum(passes), max(passes), tokens, round(ms, 1))


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


def summarise(outcomes: Sequence[Outcome]) -> list[WayScores]:
    """Returns the figures of every way."""
    rows = []
    for way in dict.fromkeys(one.way for one in outcomes):
        own = [one for one in outcomes if one.way == way]
        p50, p95 = (float(np.percentile([one.ms for one in own], share)) for share in (50, 95))
        passed, valid, refused = (sum(getattr(one, name) for one in own) for name in ("passed", "valid", "refused"))
        passes, longest, tokens = (sum(getattr(one, name) for one in own) for name in ("nfe", "longest", "tokens"))
        rows.append(WayScores(way, len(own), passed, valid, refused, passes, longest, tokens, p50, p95))
    return rows


def table(rows: Sequence[WayScores], gaps: int) -> Table:
    """Returns a table with one row per way."""
    grid = Table(title=f"{gaps} lines cut out of a solution")
    counted = ("solutions", "passed", "parse", "refused", "passes", "of the longest", "tokens")
    for column in ("", *counted, "p50 ms", "p95 ms"):
        grid.add_column(column, justify="right" if column else "left")
    for row in rows:
        counts = (row.solutions, row.passed, row.valid, row.refused, row.nfe, row.longest, row.tokens)
        grid.add_row(row.way, *map(str, counts), f"{row.ms_p50:,.0f}", f"{row.ms_p95:,.0f}")
    return grid
