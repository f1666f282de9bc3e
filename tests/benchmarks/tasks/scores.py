"""Computes the figures of an evaluation: rates with their uncertainty, tokens per pass, and latency."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from tests.benchmarks.tasks.dataset import Kind
from tests.benchmarks.tasks.sandbox import Verdict

from lacuna_model.core.params import Status

_Z_95 = 1.959964  # normal quantile of a two-sided 95 % interval


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


class Scores(msgspec.Struct, frozen=True):
    """The figures of one engine over some problems; rates in 0..1, times in milliseconds."""

    n: int
    pass_rate: float
    pass_low: float
    pass_high: float
    exact_match: float
    syntax_valid: float
    timeouts: int
    tokens: int
    nfe: int
    tokens_per_pass: float
    ms_p50: float
    ms_p95: float


class EngineScores(Scores, frozen=True):
    """An engine's figures over all problems, and by kind."""

    kinds: dict[Kind, Scores] = {}


class Report(msgspec.Struct, frozen=True):
    """The output of ``python -m tests.benchmarks evaluate --json``."""

    engines: dict[str, EngineScores]


def wilson(passed: int, n: int) -> tuple[float, float]:
    """Returns Wilson's 95 % score interval for a rate (Wilson 1927), valid for small ``n`` and rates near 0 or 1."""
    if n == 0:
        return 0.0, 1.0
    rate, z2 = passed / n, _Z_95**2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z_95 / (1 + z2 / n) * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    # Exact at 0 and 1, where rounding could exclude the rate.
    return centre - half if passed else 0.0, centre + half if passed < n else 1.0


def score(attempts: Sequence[Attempt]) -> Scores:
    """Returns the figures over ``attempts`` of one engine; there must be at least one."""
    n = len(attempts)
    passed = sum(attempt.passed for attempt in attempts)
    low, high = wilson(passed, n)
    tokens, nfe = sum(attempt.tokens for attempt in attempts), sum(attempt.nfe for attempt in attempts)
    p50, p95 = np.percentile([attempt.ms for attempt in attempts], [50, 95])
    return Scores(
        n=n,
        pass_rate=round(passed / n, 4),
        pass_low=round(low, 4),
        pass_high=round(high, 4),
        exact_match=round(sum(attempt.exact for attempt in attempts) / n, 4),
        syntax_valid=round(sum(attempt.syntax_valid for attempt in attempts) / n, 4),
        timeouts=sum(attempt.verdict == "timeout" for attempt in attempts),
        tokens=tokens,
        nfe=nfe,
        tokens_per_pass=round(tokens / nfe, 3) if nfe else 0.0,
        ms_p50=round(float(p50), 1),
        ms_p95=round(float(p95), 1),
    )


def report(attempts: Sequence[Attempt]) -> Report:
    """Returns the figures of every engine, in the order in which they first appear."""
    engines: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        engines.setdefault(attempt.engine, []).append(attempt)
    return Report({name: _engine_scores(own) for name, own in engines.items()})


def _engine_scores(attempts: Sequence[Attempt]) -> EngineScores:
    kinds: dict[Kind, list[Attempt]] = {}
    for attempt in attempts:
        kinds.setdefault(attempt.kind, []).append(attempt)
    overall = msgspec.structs.asdict(score(attempts))
    return EngineScores(**overall, kinds={kind: score(kinds[kind]) for kind in sorted(kinds)})
