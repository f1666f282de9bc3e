"""The loop of ``evaluate``: engines fill what is asked, in turns; every answer is judged, recorded and summed up."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from tests.benchmarks.figures import Row, by, grouped, rated, ratio, times
from tests.benchmarks.records import Records

from lacuna_model.core.params import InfillRequest, InfillResult, Region

_WARM_UP = InfillRequest(text="def add(a, b):\n    return\n", regions=(Region(25, 25, max_tokens=4),), path="add.py")


@dataclass(frozen=True, slots=True)
class Filler:
    """An engine under evaluation, which fills every region of a request."""

    name: str
    fill: Callable[[InfillRequest], InfillResult]


class Scores(msgspec.Struct, frozen=True):
    """What an answer is worth: ``counts`` of what is right, the first of them ``of`` so many; ``means`` are averaged.

    ``detail`` says why it is wrong.
    """

    counts: dict[str, int]
    of: int = 1
    means: dict[str, tuple[float, ...]] = {}
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A request, the ``name`` and the ``group`` of its problem, and what judges the filled text and its fills."""

    name: str
    group: str
    request: InfillRequest
    judge: Callable[[str, Sequence[str]], Scores]


class Evaluation(msgspec.Struct, frozen=True):
    """What records belong to: only those of the same model that was asked the same are gone on with."""

    model: str
    asked: str


class Answer(msgspec.Struct, frozen=True):
    """One engine's fills of one problem; a line of the records.

    ``ms`` is the wall-clock time of its ``fill``; ``tokens``, ``steps`` and ``nfe`` (passes) are its own counts.
    """

    engine: str
    name: str
    group: str
    fills: tuple[str, ...]
    refused: bool
    scores: Scores
    tokens: int
    nfe: int
    steps: int
    ms: float


def answer(question: Question, filler: Filler) -> Answer:
    """Fills one problem with one engine, times and judges it: what is refused passes no test."""
    started = time.perf_counter()
    result = filler.fill(question.request)
    ms = (time.perf_counter() - started) * 1000
    scores = question.judge(question.request.filled(result.fills), result.fills)
    refused = result.status != "ok"
    if refused:
        scores = msgspec.structs.replace(scores, counts={**scores.counts, "passed": 0}, detail=result.message)
    stats = result.stats
    counts = stats.tokens, stats.nfe, stats.steps, round(ms, 2)
    return Answer(filler.name, question.name, question.group, result.fills, refused, scores, *counts)


def measure(
    questions: Sequence[Question], fillers: Sequence[Filler], path: Path | None, head: Evaluation
) -> list[Answer]:
    """All answers; the engines take turns at every problem, so that a change of the machine affects all."""
    for filler in fillers:
        filler.fill(_WARM_UP)
    with Records(path, Answer, head) as records:
        return records.run(
            "problems",
            [(question, filler) for question in questions for filler in fillers],
            lambda one: answer(*one),
            key=lambda one: (one[1].name, one[0].name),
            answered=lambda one: (one.engine, one.name),
        )


def rows(answers: Sequence[Answer]) -> list[Row]:
    """The figures of every engine, by group and over all problems."""
    return [
        {"engine": engine, "problems": group, **_sums(found)}
        for engine, own in by(answers, lambda one: one.engine).items()
        for group, found in grouped(own, lambda one: one.group).items()
    ]


def _sums(own: Sequence[Answer]) -> Row:
    counts = {name: sum(one.scores.counts[name] for one in own) for name in own[0].scores.counts}
    first, *others = counts
    n, tokens, passes = sum(one.scores.of for one in own), sum(one.tokens for one in own), sum(one.nfe for one in own)
    means = {name: [value for one in own for value in one.scores.means[name]] for name in own[0].scores.means}
    return {
        "n": n,
        **rated(first, counts[first], n),
        **{name: counts[name] for name in others},
        **{name: ratio(sum(values), len(values)) for name, values in means.items()},
        "refused": sum(one.refused for one in own),
        "tokens": tokens,
        "passes": passes,
        "steps": sum(one.steps for one in own),
        "tokens a pass": ratio(tokens, passes),
        **times([one.ms for one in own]),
    }
