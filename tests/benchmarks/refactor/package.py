"""The command ``refactor``: refactors a package in batches and place by place, and checks the result with git."""

import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, InfillResult
from lacuna_model.core.regions import MAX_GAPS
from lacuna_model.syntax import parses
from lacuna_server.refactor.apply import apply
from lacuna_server.refactor.fill import FileFill, fill_files
from lacuna_server.refactor.places.gather import gather
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.plan import Plan
from lacuna_server.refactor.rewriting.refactoring import Refactoring, places
from lacuna_server.refactor.rewriting.rewrite import Rewrite

if TYPE_CHECKING:
    from rich.table import Table

HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", re.MULTILINE)
GIT = ("git", "-c", "user.name=lacuna", "-c", "user.email=lacuna@localhost", "-c", "core.autocrlf=false")


class Run(msgspec.Struct, frozen=True):
    """The cost and result of filling all places with up to ``max_holes`` holes in a request.

    ``nfe`` counts forward passes. ``cpu_seconds`` is this process's CPU time, for machines that are shared.
    """

    max_holes: int
    places: int
    holes: int
    files: int
    requests: int
    nfe: int
    failed: int
    seconds: float
    cpu_seconds: float


class Outcome(msgspec.Struct, frozen=True):
    """The state of the files after the refactor; ``lines_outside`` counts changed lines outside all places."""

    changed_files: int
    unparsed_files: tuple[str, ...]
    uncompiled_files: tuple[str, ...]
    lines_outside: int


def fetch(package: str, folder: Path) -> Path:
    """Downloads the wheel of a package, unpacks its files into a new git repository, and commits them.

    Returns the repository's folder. Raises RequestError where pip cannot download the package.
    """
    tree = folder / "tree"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "-q", "-d", str(folder)]
    try:
        subprocess.run([*command, package], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise RequestError(f"pip cannot get {package}: {error.stderr.strip().splitlines()[-1]}") from error
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(tree, [name for name in wheel.namelist() if ".dist-info/" not in name])
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", package)):
        subprocess.run([*GIT, *arguments], cwd=tree, check=True)
    return tree


def run(
    found: Sequence[tuple[Source, list[Rewrite]]],
    answer: Callable[[InfillRequest], InfillResult],
    advance: Callable[[int], None],
    *,
    max_holes: int = MAX_GAPS,
) -> tuple[Run, Plan]:
    """Fills all places with up to ``max_holes`` holes in a request, and measures the time."""
    results: list[InfillResult] = []

    def counted(request: InfillRequest) -> InfillResult:
        results.append(answer(request))
        return results[-1]

    started, cpu_started = time.perf_counter(), time.process_time()
    fills = [FileFill(source, rewrites, max_holes=max_holes) for source, rewrites in found]
    fill_files(fills, counted, advance)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    plan = Plan("benchmark", tuple(fill.edits() for fill in fills))
    rewrites = [rewrite for _, own in found for rewrite in own]
    return Run(
        max_holes=max_holes,
        places=len(rewrites),
        holes=sum(len(rewrite.holes) for rewrite in rewrites),
        files=len(found),
        requests=len(results),
        nfe=sum(result.stats.nfe for result in results),
        failed=plan.num_failed,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
    ), plan


def find(tree: Path, refactoring: Refactoring) -> list[tuple[Source, list[Rewrite]]]:
    """Returns the places of a refactoring in a folder."""
    sources, _ = gather([str(tree)], refactoring.languages)
    return places(refactoring, sources)[0]


def first(found: Sequence[tuple[Source, list[Rewrite]]], count: int) -> list[tuple[Source, list[Rewrite]]]:
    """Returns the first ``count`` places, or all where it is 0."""
    chosen = []
    left = count or sum(len(rewrites) for _, rewrites in found)
    for source, rewrites in found:
        if left > 0:
            chosen.append((source, rewrites[:left]))
            left -= len(rewrites)
    return chosen


def write(found: Sequence[tuple[Source, list[Rewrite]]], plan: Plan, tree: Path) -> Outcome:
    """Applies the plan, and checks that the files parse and compile and are unchanged outside the places."""
    changed = apply(plan)
    unparsed, uncompiled, outside = [], [], 0
    for source, rewrites in found:
        text = Path(source.path).read_bytes()
        if not parses(text, source.language):
            unparsed.append(source.path)
        if source.language.name == "python":
            compiled = subprocess.run(
                [sys.executable, "-m", "py_compile", source.path], capture_output=True, check=False
            )
            if compiled.returncode:
                uncompiled.append(source.path)
        outside += _lines_outside(source, rewrites, tree)
    return Outcome(len(changed), tuple(unparsed), tuple(uncompiled), outside)


def _lines_outside(source: Source, rewrites: Sequence[Rewrite], tree: Path) -> int:
    """Returns how many of the old lines in ``git diff`` belong to no place."""
    name = str(Path(source.path).relative_to(tree))
    diff = subprocess.run([*GIT, "diff", "-U0", "--", name], cwd=tree, capture_output=True, check=True).stdout
    touched: set[int] = set()
    for rewrite in rewrites:
        touched.update(range(source.position(rewrite.start)[0], source.position(rewrite.end)[0] + 1))
    named = {
        line
        for hunk in HUNK.finditer(diff)
        for line in range(int(hunk[1]), int(hunk[1]) + int(hunk[2] if hunk[2] is not None else 1))
    }
    return len(named - touched)


def table(runs: Sequence[Run]) -> "Table":
    """Returns a table that compares the runs."""
    from rich.table import Table

    grid = Table(title="Filling the places of a refactor")
    for heading in (
        "holes a request",
        "places",
        "holes",
        "requests",
        "passes",
        "failed",
        "seconds",
        "CPU s",
        "places/s",
        "places/CPU s",
    ):
        grid.add_column(heading, justify="right")
    for one in runs:
        numbers = (one.max_holes, one.places, one.holes, one.requests, one.nfe, one.failed)
        rates = (one.places / one.seconds, one.places / one.cpu_seconds)
        grid.add_row(*map(str, numbers), f"{one.seconds:.1f}", f"{one.cpu_seconds:.1f}", *(f"{r:.2f}" for r in rates))
    return grid
