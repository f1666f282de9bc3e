"""The command ``evaluate --workspaces``: computes and prints the figures by arm and by the shape of the gaps."""

import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tests.benchmarks.held_out.cases import SHAPES
from tests.benchmarks.tasks.records import Records
from tests.benchmarks.workspaces.cases import Held, draw_cases
from tests.benchmarks.workspaces.measure import ARMS, Bench, Outcome

from lacuna_model.backends.readers import Loaded
from lacuna_model.core.errors import RequestError

DEFAULT_CASES = 120


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of an evaluation: the model, the number of cases, and the seed that draws them."""

    subject: str
    cases: int
    seed: int


class ArmScores(msgspec.Struct, frozen=True):
    """The figures of one arm over all gaps of one shape; rates in 0..1, times in milliseconds.

    ``refused`` is the share of cases answered with ``no_valid_fill``, in which no gap is filled. ``decode_ms_p50``
    excludes the encoding of the context, which is new in every case.
    """

    cases: int
    gaps: int
    exact: float
    similarity: float
    right: float
    refused: float
    nfe: float
    tokens_per_pass: float
    ms_p50: float
    ms_p95: float
    decode_ms_p50: float


class WorkspaceReport(msgspec.Struct, frozen=True):
    """The figures by arm and shape; those over all shapes are under "all"."""

    seed: int
    arms: dict[str, dict[str, ArmScores]]


def summarise(outcomes: Sequence[Outcome], seed: int) -> WorkspaceReport:
    """Returns the figures by arm, first over all gaps, then for every shape."""
    arms: dict[str, dict[str, ArmScores]] = {}
    for arm in dict.fromkeys(one.arm for one in outcomes):
        own = [one for one in outcomes if one.arm == arm]
        arms[arm] = {"all": _score(own)}
        for shape in SHAPES:
            if some := [one for one in own if one.shape == shape]:
                arms[arm][shape] = _score(some)
    return WorkspaceReport(seed, arms)


def _score(outcomes: Sequence[Outcome]) -> ArmScores:
    def mean(values: Iterable[float]) -> float:
        return round(float(np.mean(list(values))), 4)

    nfe, tokens = sum(one.nfe for one in outcomes), sum(one.tokens for one in outcomes)
    p50, p95 = np.percentile([one.ms for one in outcomes], [50, 95])
    return ArmScores(
        cases=len(outcomes),
        gaps=sum(len(one.exact) for one in outcomes),
        exact=mean(value for one in outcomes for value in one.exact),
        similarity=mean(value for one in outcomes for value in one.similarity),
        right=mean(value for one in outcomes for value in one.right),
        refused=mean(one.status == "no_valid_fill" for one in outcomes),
        nfe=mean(one.nfe for one in outcomes),
        tokens_per_pass=round(tokens / nfe, 3) if nfe else 0.0,
        ms_p50=round(float(p50), 1),
        ms_p95=round(float(p95), 1),
        decode_ms_p50=round(float(np.median([one.ms - one.encode_ms for one in outcomes])), 1),
    )


def workspace_main(
    model: Loaded,
    packages: Sequence[Held],
    *,
    arms: Sequence[str] = (),
    limit: int = DEFAULT_CASES,
    seed: int = 0,
    subject: str = "",
    records: Path | None = None,
    as_json: bool = False,
) -> WorkspaceReport:
    """Fills gaps in files of ``packages``, prints the figures of every arm and returns them.

    ``limit`` is the number of cases. ``records`` receives one JSON line per case and arm; an interrupted evaluation of
    the same ``subject`` resumes from it. Raises RequestError for an unknown arm and for records of another evaluation.
    """
    if unknown := [arm for arm in arms if arm not in ARMS]:
        raise RequestError(f"no arm named {unknown[0]!r}; there are {', '.join(ARMS)}")
    wanted = arms or ARMS
    cases = draw_cases(packages, limit, seed)
    kept = Records(records, Question(subject, limit, seed), msgspec.json.Decoder(Outcome))
    with kept, tempfile.TemporaryDirectory(prefix="lacuna-workspaces-") as folder:
        outcomes = [one for one in kept.found if one.arm in wanted]
        done = {(one.arm, one.number) for one in outcomes}
        steps = Bench(model, Path(folder)).run(packages, cases, wanted, done)
        left = len(cases) * len(wanted) - len(done)
        for one in track(steps, "workspaces", left, console=Console(stderr=True)):
            kept.add(one)
            outcomes.append(one)
    outcomes.sort(key=lambda one: wanted.index(one.arm))
    report = summarise(outcomes, seed)
    if as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        Console().print(table(report))
    return report


def table(report: WorkspaceReport) -> Table:
    """Returns a table with one row per arm and shape."""
    grid = Table(title=f"Gaps in files of packages not seen before (seed {report.seed})")
    columns = (
        "arm",
        "gaps of",
        "n",
        "exact",
        "similarity",
        "right tokens",
        "refused",
        "passes",
        "tok/pass",
        "p50",
        "p95",
        "decode",
    )
    for name in columns:
        grid.add_column(name, justify="left" if name in ("arm", "gaps of") else "right")
    for arm, shapes in report.arms.items():
        for shape, scores in shapes.items():
            rates = (f"{scores.exact:.1%}", f"{scores.similarity:.3f}", f"{scores.right:.1%}", f"{scores.refused:.1%}")
            passes = (f"{scores.nfe:.1f}", f"{scores.tokens_per_pass:.2f}")
            times = (f"{scores.ms_p50:.0f} ms", f"{scores.ms_p95:.0f} ms", f"{scores.decode_ms_p50:.0f} ms")
            grid.add_row(arm if shape == "all" else "", shape, str(scores.gaps), *rates, *passes, *times)
        grid.add_section()
    return grid
