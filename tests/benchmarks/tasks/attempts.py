"""Runs engines over problems, judges every fill by its tests, and sums up."""

import time
from collections.abc import Sequence

import msgspec
from tests.benchmarks.figures import Row, grouped, rated, ratio, times
from tests.benchmarks.records import Records
from tests.benchmarks.tasks.dataset import Kind, Problem
from tests.benchmarks.tasks.engines import Filler
from tests.benchmarks.tasks.sandbox import Outcome, Sandbox, Verdict

from lacuna_model.core.params import InfillRequest, Region, Status
from training.files import parses

_WARM_UP = InfillRequest(text="def add(a, b):\n    return\n", regions=(Region(25, 25, max_tokens=4),), path="add.py")


class Attempt(msgspec.Struct, frozen=True):
    """One engine's fill of one problem and its verdict; a line of the records file.

    ``exact`` compares with the canonical solution, without trailing white space. ``ms`` is the wall-clock time of the
    engine's ``fill``; ``tokens`` and ``nfe`` (forward passes) are the engine's own counts.
    """

    engine: str
    task_id: str
    kind: Kind
    fill: str
    status: Status
    verdict: Verdict
    detail: str
    exact: bool
    syntax_valid: bool
    tokens: int
    nfe: int
    ms: float

    @property
    def passed(self) -> bool:
        """Whether the engine did not refuse and the tests passed."""
        return self.status != "no_valid_fill" and self.verdict == "passed"


def attempt(problem: Problem, filler: Filler, sandbox: Sandbox) -> Attempt:
    """Fills one problem with one engine, times it and runs its tests."""
    started = time.perf_counter()
    result = filler.fill(problem.request)
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
        syntax_valid=parses(problem.document(fill), "python"),
        tokens=result.stats.tokens,
        nfe=result.stats.nfe,
        ms=round(ms, 2),
    )


def measure(problems: Sequence[Problem], fillers: Sequence[Filler], records: Records[Attempt]) -> list[Attempt]:
    """All attempts; the engines take turns at every problem, so that a change of the machine affects all."""
    for filler in fillers:
        filler.fill(_WARM_UP)
    questions = [(problem, filler) for problem in problems for filler in fillers]
    with Sandbox() as sandbox:
        return records.run(
            "problems",
            questions,
            lambda one: attempt(*one, sandbox),
            key=lambda one: (one[1].name, one[0].task_id),
            answered=lambda one: (one.engine, one.task_id),
        )


def rows(attempts: Sequence[Attempt]) -> list[Row]:
    """The figures of every engine, by kind and over all problems."""
    return [
        {
            "engine": engine,
            "problems": kind,
            "n": len(own),
            **rated("passed", sum(one.passed for one in own), len(own)),
            "exact": sum(one.exact for one in own),
            "parse": sum(one.syntax_valid for one in own),
            "refused": sum(one.status == "no_valid_fill" for one in own),
            "tokens": sum(one.tokens for one in own),
            "passes": sum(one.nfe for one in own),
            "tokens a pass": ratio(sum(one.tokens for one in own), sum(one.nfe for one in own)),
            **times([one.ms for one in own]),
        }
        for engine in dict.fromkeys(one.engine for one in attempts)
        for kind, own in grouped([one for one in attempts if one.engine == engine], lambda one: one.kind).items()
    ]
