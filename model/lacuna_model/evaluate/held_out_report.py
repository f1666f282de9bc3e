"""The figures of the evaluation on held-out files, as a report and as tables."""

from collections.abc import Mapping, Sequence

import msgspec
from rich.table import Table

from lacuna_model.evaluate.engines import STEPS
from lacuna_model.evaluate.held_out import ALL, FillScores, Matrix, Restored, summarise
from lacuna_model.train.calibration import Bin, expected_error, pooled
from lacuna_model.train.validation import ValidationReport


class Question(msgspec.Struct, frozen=True, tag="question"):
    """What was asked: only records of the same question are gone on with. ``adapter`` is the sha256 of its file."""

    model: str
    adapter: str
    languages: tuple[str, ...]
    cases: int
    samples: int
    seed: int


class SlotScores(msgspec.Struct, frozen=True, tag="slots"):
    """What the canvas side makes of single slots in the held-out files of a language."""

    language: str
    scores: ValidationReport


class HeldOutReport(msgspec.Struct, frozen=True):
    """What ``lacuna evaluate --held-out`` prints with ``--json``.

    ``fills`` by engine, language and shape; ``slots`` by language; ``steps`` by how many slots a step may commit;
    ``reliability`` and ``calibration_error`` over all languages.
    """

    question: Question
    fills: Matrix
    slots: dict[str, ValidationReport]
    steps: dict[str, FillScores]
    reliability: tuple[Bin, ...]
    calibration_error: float


def report(question: Question, results: Sequence[Restored | SlotScores]) -> HeldOutReport:
    """Figures over all results."""
    slots = {one.language: one.scores for one in results if isinstance(one, SlotScores)}
    matrix = summarise([one for one in results if isinstance(one, Restored)])
    # Our engine as it is belongs to both: its default is one of the ways to spend steps.
    curve = {name: languages[ALL][ALL] for name, languages in matrix.items() if name in ("lacuna", *STEPS)}
    bins = pooled([scores.reliability for scores in slots.values()])
    return HeldOutReport(
        question=question,
        fills={name: languages for name, languages in matrix.items() if name not in STEPS},
        slots=slots,
        steps=curve if len(curve) > 1 else {},
        reliability=bins,
        calibration_error=expected_error(bins),
    )


def tables(found: HeldOutReport) -> list[Table]:
    """Everything as tables."""
    by_shape = _fills("By shape", {name: languages[ALL] for name, languages in found.fills.items()})
    by_language = {
        name: {language: shapes[ALL] for language, shapes in languages.items() if language != ALL}
        for name, languages in found.fills.items()
    }
    steps = {name: {ALL: scores} for name, scores in found.steps.items()}
    grids = [by_shape, _fills("By language", by_language)]
    grids += [_fills("Steps against quality", steps)] if steps else []
    grids += [_slots(found)] if found.slots else []
    return grids


def _fills(title: str, rows: Mapping[str, Mapping[str, FillScores]]) -> Table:
    grid = Table(title=title, caption="exact match with its 95 % Wilson interval")
    for name in ("engine", "gaps of", "n", "exact", "similarity", "right", "syntax", "passes", "tok/pass", "p50"):
        grid.add_column(name, justify="left" if name in ("engine", "gaps of") else "right")
    for engine, groups in rows.items():
        for index, (group, scores) in enumerate(groups.items()):
            exact = f"{scores.exact:.1%} ({scores.exact_low:.0%} to {scores.exact_high:.0%})"
            rates = (exact, f"{scores.similarity:.3f}", f"{scores.right:.1%}", f"{scores.syntax_valid:.1%}")
            passes = (f"{scores.passes:.1f}", f"{scores.tokens_per_pass:.2f}", f"{scores.ms_p50:.0f} ms")
            grid.add_row("" if index else engine, group, str(scores.gaps), *rates, *passes)
        grid.add_section()
    return grid


def _slots(found: HeldOutReport) -> Table:
    grid = Table(
        title="Slots, all of a gap masked, the true length not told",
        caption=f"calibration error over all languages: {found.calibration_error:.1%}",
    )
    voices = ("frontier", "base's", "both")
    for name in ("language", "slots", "right", "nll", *voices, "end right", "put right", "calibration"):
        grid.add_column(name, justify="left" if name == "language" else "right")
    for language, scores in found.slots.items():
        frontier = (scores.frontier_accuracy, scores.base_frontier_accuracy, scores.guided_frontier_accuracy)
        ends = (f"{scores.end_accuracy:.1%}", f"{scores.corrected:.1%}", f"{scores.calibration_error:.1%}")
        shares = (f"{scores.masked_accuracy:.1%}", f"{scores.masked_nll:.2f}")
        grid.add_row(language, str(scores.slots), *shares, *(f"{share:.1%}" for share in frontier), *ends)
    return grid
