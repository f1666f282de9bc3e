"""How well engines restore gaps in held-out files: exact match and edit similarity, for one gap and for several."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np
from rapidfuzz import fuzz
from rich.console import Console
from rich.progress import track
from rich.table import Table

from lacuna_model.evaluate.held_out_cases import SHAPES, Case, Shape, sample_cases
from lacuna_model.evaluate.runner import Filler, parses
from lacuna_model.train.documents import read_documents


class Restored(msgspec.Struct, frozen=True):
    """One engine's fills of one case; ``exact`` and ``similarity`` have one entry per gap.

    ``exact`` sets trailing white space aside; ``similarity`` is the normalised Indel similarity in 0..1, the "edit
    similarity" of CrossCodeEval (arXiv 2310.11248).
    """

    engine: str
    shape: Shape
    package: str
    path: str
    fills: tuple[str, ...]
    truths: tuple[str, ...]
    exact: tuple[bool, ...]
    similarity: tuple[float, ...]
    syntax_valid: bool
    tokens: int
    nfe: int
    ms: float


class ShapeScores(msgspec.Struct, frozen=True):
    """The figures of one engine over all gaps of one shape; rates and similarity in 0..1, times in milliseconds."""

    cases: int
    gaps: int
    exact_match: float
    similarity: float
    syntax_valid: float
    tokens_per_pass: float
    ms_p50: float
    ms_p95: float


class HeldOutReport(msgspec.Struct, frozen=True):
    """Figures by engine and shape."""

    seed: int
    engines: dict[str, dict[Shape, ShapeScores]]


def restore(case: Case, filler: Filler) -> Restored:
    """One engine's fills of one case, timed and compared with what stood there."""
    started = time.perf_counter()
    result = filler.fill(case.request)
    ms = (time.perf_counter() - started) * 1000
    fills = result.fills or ("",) * len(case.truths)
    pairs = list(zip(fills, case.truths, strict=True))
    return Restored(
        engine=filler.name,
        shape=case.shape,
        package=case.package,
        path=case.path,
        fills=fills,
        truths=case.truths,
        exact=tuple(fill.rstrip() == truth.rstrip() for fill, truth in pairs),
        similarity=tuple(round(fuzz.ratio(fill, truth) / 100, 4) for fill, truth in pairs),
        syntax_valid=parses(case.document(fills)),
        tokens=result.stats.tokens,
        nfe=result.stats.nfe,
        ms=round(ms, 2),
    )


def run_cases(cases: Sequence[Case], fillers: Sequence[Filler]) -> Iterator[Restored]:
    """Every engine on every case, taking turns."""
    for case in cases:
        for filler in fillers:
            yield restore(case, filler)


def summarise(restored: Sequence[Restored]) -> Mapping[str, dict[Shape, ShapeScores]]:
    """Figures by engine and shape, shapes in their usual order."""
    order = sorted(restored, key=lambda one: (one.engine, SHAPES.index(one.shape)))
    engines: dict[str, dict[Shape, ShapeScores]] = {}
    for (engine, shape), group in groupby(order, key=lambda one: (one.engine, one.shape)):
        engines.setdefault(engine, {})[shape] = _score(list(group))
    return engines


def _score(restored: Sequence[Restored]) -> ShapeScores:
    nfe = sum(one.nfe for one in restored)
    exact = [value for one in restored for value in one.exact]
    p50, p95 = np.percentile([one.ms for one in restored], [50, 95])
    return ShapeScores(
        cases=len(restored),
        gaps=len(exact),
        exact_match=round(float(np.mean(exact)), 4),
        similarity=round(float(np.mean([value for one in restored for value in one.similarity])), 4),
        syntax_valid=round(sum(one.syntax_valid for one in restored) / len(restored), 4),
        tokens_per_pass=round(sum(one.tokens for one in restored) / nfe, 3) if nfe else 0.0,
        ms_p50=round(float(p50), 1),
        ms_p95=round(float(p95), 1),
    )


def held_out_main(
    corpus: Path,
    fillers: Sequence[Filler],
    *,
    num_cases: int = 90,
    seed: int = 0,
    records: Path | None = None,
    as_json: bool = False,
) -> HeldOutReport:
    """Restores gaps in the Python files of ``corpus`` (``held_out.jsonl.zst``) and prints the figures.

    ``records`` receives one JSON line per case and engine. Raises CorpusError where the corpus is damaged.
    """
    documents = [one for one in read_documents(corpus) if one.language == "python" and parses(one.text)]
    cases = sample_cases(documents, num_cases, seed)
    steps = track(run_cases(cases, fillers), "held-out gaps", len(cases) * len(fillers), console=Console(stderr=True))
    restored = list(steps)
    if records:
        records.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in restored))
    report = HeldOutReport(seed, dict(summarise(restored)))
    if as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        Console().print(table(report))
    return report


def table(report: HeldOutReport) -> Table:
    """The figures beside each other, one row per engine and shape."""
    grid = Table(title=f"Gaps in held-out files (seed {report.seed})")
    for name in ("engine", "shape", "gaps", "exact", "similarity", "syntax", "tok/pass", "p50", "p95"):
        grid.add_column(name, justify="left" if name in ("engine", "shape") else "right")
    for engine, shapes in report.engines.items():
        for shape, scores in shapes.items():
            rates = (f"{scores.exact_match:.1%}", f"{scores.similarity:.3f}", f"{scores.syntax_valid:.1%}")
            times = (f"{scores.tokens_per_pass:.2f}", f"{scores.ms_p50:.0f} ms", f"{scores.ms_p95:.0f} ms")
            grid.add_row(engine, shape, str(scores.gaps), *rates, *times)
    return grid
