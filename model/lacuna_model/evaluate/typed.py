"""Suggestions as a user meets them: the rest of a line that is being typed, and how sure the model is of it."""

import time
from collections.abc import Iterator, Sequence
from random import Random

import msgspec
from rich.table import Table

from lacuna_model.evaluate.held_out_cases import Case, code_lines, long_enough
from lacuna_model.evaluate.runner import Filler
from lacuna_model.params import InfillRequest, Region
from lacuna_model.train.documents import Document

MAX_TOKENS = 96
AT_THE_START = 0.35  # of the cursors stand where a line begins, the others anywhere in it
AT_THE_END = 0.25  # of the files end with the line that is being typed
THRESHOLDS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


class Typed(msgspec.Struct, frozen=True):
    """One suggestion: whether it is the rest of the line, and the confidence that it is; ``ms`` is what it took."""

    language: str
    package: str
    fill: str
    truth: str
    exact: bool
    confidence: float
    ms: float


class Shown(msgspec.Struct, frozen=True):
    """What showing only suggestions of some confidence comes to.

    ``shown`` is the share of them that is shown, ``right`` how many of those are exact, and ``kept`` how many of all
    that are exact are shown.
    """

    threshold: float
    shown: float
    right: float
    kept: float


def typed_cases(documents: Sequence[Document], num_cases: int, seed: int) -> Iterator[Case]:
    """``num_cases`` cursors in lines of code, languages in turn; the rest of the line is what is wanted.

    The same arguments give the same cases. Raises LacunaError where no document is long enough.
    """
    by_language: dict[str, list[Document]] = {}
    for document in long_enough(documents):
        by_language.setdefault(document.language, []).append(document)
    languages, rng = sorted(by_language), Random(seed)
    for number in range(num_cases):
        yield _cut(rng.choice(by_language[languages[number % len(languages)]]), rng)


def _cut(document: Document, rng: Random) -> Case:
    lines = document.text.split("\n")
    row = rng.choice(code_lines(document))
    line = lines[row].rstrip()
    indented = len(line) - len(line.lstrip())
    column = indented if rng.random() < AT_THE_START else rng.randrange(indented, len(line))
    before = "\n".join([*lines[:row], line[:column]])
    after = "\n" if rng.random() < AT_THE_END else "\n" + "\n".join(lines[row + 1 :])
    at = len(before.encode())
    region = Region(at, at, MAX_TOKENS, max_lines=1, single_line=True)
    request = InfillRequest(text=before + after, regions=(region,), path=document.path, language=document.language)
    return Case("line", document.package, document.path, request, (line[column:],))


def suggest(case: Case, filler: Filler) -> Typed | None:
    """What is suggested for a case; None where nothing is."""
    began = time.perf_counter()
    result = filler.fill(case.request)
    ms = (time.perf_counter() - began) * 1e3
    (fill,), (truth,) = result.fills, case.truths
    if result.status == "no_valid_fill" or not fill.strip():
        return None
    exact = fill.rstrip() == truth
    return Typed(case.request.language, case.package, fill, truth, exact, result.confidence[0][0], round(ms, 1))


def shown(suggestions: Sequence[Typed], thresholds: Sequence[float] = THRESHOLDS) -> list[Shown]:
    """What each threshold comes to; there is a suggestion that is exact."""
    exact = sum(one.exact for one in suggestions)
    found = []
    for threshold in thresholds:
        sure = [one for one in suggestions if one.confidence >= threshold]
        right = sum(one.exact for one in sure)
        found.append(Shown(threshold, len(sure) / len(suggestions), right / max(len(sure), 1), right / exact))
    return found


def table(found: Sequence[Shown]) -> Table:
    """The thresholds side by side."""
    table = Table(title="suggestions shown from a confidence on")
    for column in ("confidence", "shown", "exact of those", "of all exact ones"):
        table.add_column(column, justify="right")
    for one in found:
        table.add_row(f"{one.threshold:.2f}", f"{one.shown:.0%}", f"{one.right:.0%}", f"{one.kept:.0%}")
    return table
