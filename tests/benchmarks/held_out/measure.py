"""Measures how well engines restore gaps in held-out files: exact match, edit similarity and syntax."""

import time
from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np
from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq
from tests.benchmarks.held_out.cases import SHAPES, Case, Shape
from tests.benchmarks.held_out.texts import valid
from tests.benchmarks.tasks.runner import Filler
from tests.benchmarks.tasks.scores import wilson

ALL = "all"


class Restored(msgspec.Struct, frozen=True, tag="fill"):
    """One engine's fills of the case with a ``number``; the tuples have one entry per gap.

    ``exact`` ignores trailing white space. ``similarity`` is the normalised Indel similarity, the "edit similarity" of
    CrossCodeEval (arXiv 2310.11248). ``right`` is the share of the true tokens that the fill contains in their order.
    """

    engine: str
    language: str
    number: int
    shape: Shape
    package: str
    fills: tuple[str, ...]
    truths: tuple[str, ...]
    exact: tuple[bool, ...]
    similarity: tuple[float, ...]
    right: tuple[float, ...]
    syntax_valid: bool
    tokens: int
    nfe: int
    ms: float


class FillScores(msgspec.Struct, frozen=True):
    """The figures of one engine over some gaps; rates and similarity in 0..1, times in milliseconds per case.

    ``exact_low`` and ``exact_high`` bound the rate of exact matches (Wilson interval, 95 %).
    """

    cases: int
    gaps: int
    exact: float
    exact_low: float
    exact_high: float
    similarity: float
    right: float
    syntax_valid: float
    passes: float
    tokens_per_pass: float
    ms_p50: float
    ms_p95: float


# By engine, language and shape; "all" has the figures over all languages or shapes.
Matrix = dict[str, dict[str, dict[str, FillScores]]]


def restore(case: Case, number: int, filler: Filler, encode: Callable[[str], list[int]]) -> Restored:
    """Fills one case with one engine, times it and compares the fills with the true texts."""
    started = time.perf_counter()
    result = filler.fill(case.request)
    ms = (time.perf_counter() - started) * 1000
    fills = result.fills or ("",) * len(case.truths)
    pairs = list(zip(fills, case.truths, strict=True))
    truths = [encode(truth) for truth in case.truths]
    return Restored(
        engine=filler.name,
        language=case.request.language,
        number=number,
        shape=case.shape,
        package=case.package,
        fills=fills,
        truths=case.truths,
        exact=tuple(fill.rstrip() == truth.rstrip() for fill, truth in pairs),
        similarity=tuple(round(fuzz.ratio(fill, truth) / 100, 4) for fill, truth in pairs),
        right=tuple(
            round(LCSseq.similarity(encode(fill), truth) / len(truth), 4)
            for fill, truth in zip(fills, truths, strict=True)
        ),
        syntax_valid=valid(case.document(fills), case.request.language),
        tokens=result.stats.tokens,
        nfe=result.stats.nfe,
        ms=round(ms, 2),
    )


def summarise(restored: Sequence[Restored]) -> Matrix:
    """Returns the figures by engine, language and shape, in the order in which they first appear."""
    matrix: Matrix = {}
    for engine in dict.fromkeys(one.engine for one in restored):
        own = [one for one in restored if one.engine == engine]
        languages = [ALL, *dict.fromkeys(one.language for one in own)]
        matrix[engine] = {
            language: _by_shape([one for one in own if language in (ALL, one.language)]) for language in languages
        }
    return matrix


def _by_shape(restored: Sequence[Restored]) -> dict[str, FillScores]:
    groups = {shape: [one for one in restored if shape in (ALL, one.shape)] for shape in (ALL, *SHAPES)}
    return {shape: _score(group) for shape, group in groups.items() if group}


def _score(restored: Sequence[Restored]) -> FillScores:
    def mean(values: Iterable[float]) -> float:
        return round(float(np.mean(list(values))), 4)

    exact = [value for one in restored for value in one.exact]
    low, high = wilson(sum(exact), len(exact))
    nfe = sum(one.nfe for one in restored)
    p50, p95 = np.percentile([one.ms for one in restored], [50, 95])
    return FillScores(
        cases=len(restored),
        gaps=len(exact),
        exact=mean(exact),
        exact_low=round(low, 4),
        exact_high=round(high, 4),
        similarity=mean(value for one in restored for value in one.similarity),
        right=mean(value for one in restored for value in one.right),
        syntax_valid=mean(one.syntax_valid for one in restored),
        passes=mean(one.nfe for one in restored),
        tokens_per_pass=round(sum(one.tokens for one in restored) / nfe, 3) if nfe else 0.0,
        ms_p50=round(float(p50), 1),
        ms_p95=round(float(p95), 1),
    )
