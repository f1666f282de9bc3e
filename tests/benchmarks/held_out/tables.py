"""The figures of the evaluation on held-out files, as a report and as tables."""

from collections.abc import Mapping, Sequence

import msgspec
from rich.table import Table
from tests.benchmarks.held_out.measure import ALL, FillScores, Matrix, Restored, summarise
from tests.benchmarks.tasks.engines import STEPS


class Question(msgspec.Struct, frozen=True, tag="question"):
    """The parameters of an evaluation; only records with the same ones resume. ``subject`` identifies the weights."""

    subject: str
    languages: tuple[str, ...]
    cases: int
    seed: int


class HeldOutReport(msgspec.Struct, frozen=True):
    """The output of ``python -m tests.benchmarks evaluate --held-out --json``.

    ``fills`` is by engine, language and shape; ``steps`` by the number of slots that a step may commit.
    """

    question: Question
    fills: Matrix
    steps: dict[str, FillScores]


def report(question: Question, results: Sequence[Restored]) -> HeldOutReport:
    """Returns the figures over all results."""
    matrix = summarise(results)
    # The default engine belongs to both, because its schedule is one of the compared ones.
    curve = {name: languages[ALL][ALL] for name, languages in matrix.items() if name in ("lacuna", *STEPS)}
    return HeldOutReport(
        question=question,
        fills={name: languages for name, languages in matrix.items() if name not in STEPS},
        steps=curve if len(curve) > 1 else {},
    )


def tables(found: HeldOutReport) -> list[Table]:
    """Returns the figures as tables."""
    by_shape = _fills("By shape", {name: languages[ALL] for name, languages in found.fills.items()})
    by_language = {
        name: {language: shapes[ALL] for language, shapes in languages.items() if language != ALL}
        for name, languages in found.fills.items()
    }
    steps = {name: {ALL: scores} for name, scores in found.steps.items()}
    grids = [by_shape, _fills("By language", by_language)]
    grids += [_fills("Steps against quality", steps)] if steps else []
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
