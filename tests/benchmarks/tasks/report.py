"""The command ``evaluate``: shows progress, then prints the figures as a table or as JSON."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from tests.benchmarks.tasks.dataset import Problem, load_problems, spread
from tests.benchmarks.tasks.runner import Filler, pick, run
from tests.benchmarks.tasks.sandbox import Sandbox
from tests.benchmarks.tasks.scores import Attempt, Report, Scores, report

from lacuna_model.core.errors import RequestError


def evaluate_main(
    data: Path,
    available: Mapping[str, Callable[[], Filler]],
    *,
    engines: Sequence[str] = (),
    limit: int = 0,
    records: Path | None = None,
    as_json: bool = False,
) -> Report:
    """Runs the engines over the problems in ``data``, prints their figures and returns them.

    ``available`` builds engines by name, ``engines`` selects some (empty: all). ``limit`` is the number of problems,
    spread over the kinds (0: all). ``records`` receives one JSON line per attempt. Raises DatasetError, RequestError or
    SandboxError.
    """
    problems = spread(load_problems(data), limit)
    fillers = pick(available, engines)
    attempts = _with_progress(problems, fillers, records)
    figures = report(attempts)
    if as_json:
        sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")
    else:
        Console().print(table(figures))
    return figures


def _with_progress(problems: Sequence[Problem], fillers: Sequence[Filler], records: Path | None) -> list[Attempt]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    attempts: list[Attempt] = []
    passed = {filler.name: 0 for filler in fillers}
    try:
        file = records.open("wb") if records else None
    except OSError as error:
        raise RequestError(f"cannot write records to {records}: {error.strerror}") from error
    try:
        with Sandbox() as sandbox, Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task("evaluating", total=len(problems) * len(fillers))
            for one in run(problems, fillers, sandbox):
                attempts.append(one)
                passed[one.engine] += one.passed
                if file:
                    file.write(msgspec.json.encode(one) + b"\n")
                    file.flush()
                shown = "  ".join(f"{name} {count}" for name, count in passed.items())
                progress.update(task, advance=1, description=f"passed: {shown}")
    finally:
        if file:
            file.close()
    return attempts


def table(figures: Report) -> Table:
    """Returns a table with one row per engine and kind."""
    grid = Table(title="HumanEval-Infilling, every fill's tests run", caption="pass rate with its 95 % Wilson interval")
    for name in ("engine", "problems", "n", "pass rate", "exact", "syntax", "tokens", "nfe", "tok/pass", "p50", "p95"):
        grid.add_column(name, justify="left" if name in ("engine", "problems") else "right")
    for name, engine in figures.engines.items():
        rows: list[tuple[str, Scores]] = [("all", engine), *engine.kinds.items()]
        for label, scores in rows:
            grid.add_row(name if label == "all" else "", label, *_cells(scores), end_section=label == rows[-1][0])
    return grid


def _cells(scores: Scores) -> tuple[str, ...]:
    return (
        str(scores.n),
        f"{scores.pass_rate:.1%} ({scores.pass_low:.1%} to {scores.pass_high:.1%})",
        f"{scores.exact_match:.1%}",
        f"{scores.syntax_valid:.1%}",
        str(scores.tokens),
        str(scores.nfe),
        f"{scores.tokens_per_pass:.2f}",
        f"{scores.ms_p50:.0f} ms",
        f"{scores.ms_p95:.0f} ms",
    )
