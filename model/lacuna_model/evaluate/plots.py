"""Two pictures of an evaluation: quality against steps, and confidence against how often it was right."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lacuna_model.errors import RequestError
from lacuna_model.evaluate.held_out import FillScores
from lacuna_model.evaluate.held_out_report import HeldOutReport

_INCHES = (6.4, 4.2)


def draw(report: HeldOutReport, folder: Path) -> list[Path]:
    """Writes ``steps.svg`` and ``calibration.svg``, each where there are figures for it; returns their paths."""
    figures = {"steps.svg": _steps(report.steps)} if report.steps else {}
    figures |= {"calibration.svg": _calibration(report)} if report.reliability else {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # No date and fixed ids: the same figures give the same file.
        with rc_context({"svg.hashsalt": "lacuna"}):
            for name, figure in figures.items():
                figure.savefig(folder / name, metadata={"Date": None})
    except OSError as error:
        raise RequestError(f"cannot write plots to {folder}: {error.strerror}") from error
    return [folder / name for name in figures]


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


def _calibration(report: HeldOutReport) -> Figure:
    figure = Figure(figsize=_INCHES, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    confidence = [one.confidence for one in report.reliability]
    above.plot((0, 1), (0, 1), color="grey", linestyle="dashed", label="as sure as right")
    above.plot(confidence, [one.accuracy for one in report.reliability], marker="o", label="masked slots")
    above.set(ylabel="share right", title=f"expected calibration error {report.calibration_error:.1%}")
    above.legend(fontsize=8)
    below.bar(confidence, [one.slots for one in report.reliability], width=0.05)
    below.set(xlabel="probability of the best token", ylabel="slots", xlim=(0, 1))
    return figure
