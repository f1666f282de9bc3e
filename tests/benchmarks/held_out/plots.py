"""Plots the quality of an evaluation against the number of steps."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tests.benchmarks.held_out.measure import FillScores
from tests.benchmarks.held_out.tables import HeldOutReport

from lacuna_model.core.errors import RequestError

_INCHES = (6.4, 4.2)


def draw(report: HeldOutReport, folder: Path) -> Path:
    """Writes ``steps.svg`` and returns its path; raises RequestError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Without date and with fixed ids, the same figures give the same file.
        with rc_context({"svg.hashsalt": "lacuna"}):
            _steps(report.steps).savefig(folder / "steps.svg", metadata={"Date": None})
    except OSError as error:
        raise RequestError(f"cannot write plots to {folder}: {error.strerror}") from error
    return folder / "steps.svg"


def _steps(steps: Mapping[str, FillScores]) -> Figure:
    figure = Figure(figsize=_INCHES, layout="constrained")
    axes: Axes = figure.subplots()
    curve = sorted(steps.items(), key=lambda item: item[1].passes)
    x = [scores.passes for _, scores in curve]
    for label, values in {
        "edit similarity": [scores.similarity for _, scores in curve],
        "right tokens": [scores.right for _, scores in curve],
        "syntax valid": [scores.syntax_valid for _, scores in curve],
        "exact match": [scores.exact for _, scores in curve],
    }.items():
        axes.plot(x, values, marker="o", label=label)
    for at, (name, _) in zip(x, curve, strict=True):
        axes.annotate(name.removeprefix("lacuna: "), (at, 1.02), rotation=45, fontsize=7)
    axes.set(xlabel="forward passes a case", ylabel="share", xscale="log", ylim=(0, 1.25))
    axes.legend(fontsize=8, loc="center left")
    return figure
