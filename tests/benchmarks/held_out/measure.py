"""``evaluate --held-out``: how well engines restore gaps in held-out files: exact match, edit similarity and syntax."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq
from tests.benchmarks.figures import Row, grouped, rated, ratio, times
from tests.benchmarks.held_out.cases import Case, HeldOut, Shape, valid
from tests.benchmarks.records import Records
from tests.benchmarks.tasks.engines import Filler

DEFAULT_CASES = 3


class Question(msgspec.Struct, frozen=True, tag="question"):
    """The parameters of an evaluation; only records with the same ones resume. ``subject`` identifies the weights."""

    subject: str
    languages: tuple[str, ...]
    cases: int
    seed: int


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
        syntax_valid=valid(case.request.filled(fills), case.request.language),
        tokens=result.stats.tokens,
        nfe=result.stats.nfe,
        ms=round(ms, 2),
    )


def open_records(
    path: Path | None, subject: str, files: Mapping[str, HeldOut], count: int, seed: int
) -> Records[Restored]:
    """The records of an evaluation; raises RequestError as :class:`Records` does."""
    return Records(path, Restored, Question(subject, tuple(files), count, seed))


def measure(
    files: Mapping[str, HeldOut],
    count: int,
    seed: int,
    fillers: Sequence[Filler],
    encode: Callable[[str], list[int]],
    records: Records[Restored],
) -> list[Restored]:
    """All results for ``count`` cases a language, the engines in turn."""
    questions = [
        (case, number, filler)
        for texts in files.values()
        for number, case in enumerate(texts.cases(count, seed))
        for filler in fillers
    ]
    return records.run(
        "cases",
        questions,
        lambda one: restore(*one, encode),
        key=lambda one: (one[2].name, one[0].request.language, one[1]),
        answered=lambda one: (one.engine, one.language, one.number),
    )


def rows(found: Sequence[Restored]) -> list[Row]:
    """The figures of every engine by the shape of gaps, then by language."""
    engines = {
        name: [one for one in found if one.engine == name] for name in dict.fromkeys(one.engine for one in found)
    }
    shaped = [
        _row(name, what, group)
        for name, own in engines.items()
        for what, group in grouped(own, lambda o: o.shape).items()
    ]
    return shaped + [
        _row(name, what, [one for one in own if one.language == what])
        for name, own in engines.items()
        for what in dict.fromkeys(one.language for one in own)
    ]


def _row(engine: str, what: str, own: Sequence[Restored]) -> Row:
    def mean(values: Iterable[float]) -> float:
        found = list(values)
        return ratio(sum(found), len(found))

    exact = [value for one in own for value in one.exact]
    return {
        "engine": engine,
        "gaps of": what,
        "n": len(exact),
        **rated("exact", sum(exact), len(exact)),
        "similarity": mean(value for one in own for value in one.similarity),
        "true tokens in it": mean(value for one in own for value in one.right),
        "parse": mean(one.syntax_valid for one in own),
        "passes a case": mean(one.nfe for one in own),
        "tokens a pass": ratio(sum(one.tokens for one in own), sum(one.nfe for one in own)),
        **times([one.ms for one in own]),
    }
