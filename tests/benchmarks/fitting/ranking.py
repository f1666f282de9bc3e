"""The command ``fit-ranking``: fits the weights with which next edits are ranked, on real commits.

They are those of a logistic regression, which Newton's method solves.
What is offered in the commits of a repository is judged with weights fitted on all others, so that no repository
judges weights fitted on it.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import typer
from numpy.typing import NDArray
from tests.benchmarks.edits.dataset import EditCase, LineEdit, load_edit_cases, replaced
from tests.benchmarks.edits.judging import judge, line_edits
from tests.benchmarks.figures import Row, show

from lacuna_model.languages.registry import language_for
from lacuna_model.next_edit.changes import RecentChange, TokenizedText
from lacuna_model.next_edit.following import Candidate, applied, candidates, chosen
from lacuna_model.text.diff import Hunk
from lacuna_model.text.lines import lines_of

RIDGE = 0.3
STEPS = 60
THRESHOLDS = (0.4, 0.5, 0.6, 0.7)
Floats = NDArray[np.float64]


class Example(msgspec.Struct, frozen=True):
    """A candidate of a case, and whether the commit has its change there."""

    case: EditCase
    candidate: Candidate
    right: bool


def first_change(case: EditCase) -> RecentChange:
    """Returns the first change of a case."""
    edit = case.edits[case.first]
    hunk = Hunk(edit.start, edit.end, edit.start, edit.start + len(edit.new))
    language = language_for(case.path, case.language)
    return RecentChange(TokenizedText(case.before), TokenizedText("".join(case.after_first)), hunk, language)


def examples(case: EditCase) -> list[Example]:
    """Returns the candidates of a case, judged.

    A candidate is right if its new tokens stand at that place after the commit, even where the line changes further.
    """
    change = first_change(case)
    truths = [case.shifted(index) for index in range(len(case.edits)) if index != case.first]
    ranked = [one for one in candidates(change, change.new) if one.place.pattern.kind != "extracted"]
    return [Example(case, one, _is_right(case, change.new, one, truths)) for one in ranked]


def _is_right(case: EditCase, tokens: TokenizedText, one: Candidate, truths: Sequence[LineEdit]) -> bool:
    given = case.after_first
    text = applied(tokens.text, [one])
    if any("".join(replaced(given, truth)) == text for truth in truths):
        return True
    place = one.place
    left, right = tokens.texts[place.first - 1 : place.first], tokens.texts[place.last : place.last + 1]
    old = tokens.texts[place.first : place.last]
    begin, end = tokens.starts[place.first], max(tokens.ends[place.last], place.end)
    new = TokenizedText(tokens.text[begin : place.start] + place.text + tokens.text[place.end : end]).texts
    for hunk in line_edits(given, lines_of(text, keepends=True)):
        for truth in truths:
            if truth.start <= hunk.start and hunk.end <= truth.end:
                line = TokenizedText("".join(truth.new)).texts
                there = _within(line, [*left, *new]) or _within(line, [*new, *right]) if new else False
                if _within(line, [*left, *right]) if not new else there and not _within(line, [*left, *old, *right]):
                    return True
    return False


def _within(line: Sequence[str], part: Sequence[str]) -> bool:
    return any(list(line[at : at + len(part)]) == list(part) for at in range(len(line) - len(part) + 1))


def fit(found: Sequence[Example], names: Sequence[str]) -> dict[str, float]:
    """Returns the weights; the examples of a case together count as the root of their number."""
    inputs = np.array([[one.candidate.features.get(name, 0.0) for name in names] for one in found])
    right = np.array([float(one.right) for one in found])
    counts: dict[str, int] = {}
    for one in found:
        counts[one.case.id] = counts.get(one.case.id, 0) + 1
    shares = np.array([1 / math.sqrt(counts[one.case.id]) for one in found])
    ridge = np.array([1e-3 if name == "one" else RIDGE for name in names])
    weights: Floats = np.zeros(len(names))
    for _ in range(STEPS):
        said = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (shares * (said - right)) + ridge * weights
        curve = (inputs * (shares * said * (1 - said))[:, None]).T @ inputs + np.diag(ridge)
        weights = weights - np.linalg.solve(curve, slope)
    return {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True)}


def rated(one: Example, weights: dict[str, float]) -> Candidate:
    """Returns a candidate with the probability that the weights give it."""
    total = sum(weights.get(name, 0.0) * value for name, value in one.candidate.features.items())
    return replace(one.candidate, probability=1 / (1 + math.exp(-total)))


def crossed(cases: Sequence[EditCase], found: Sequence[Example], names: Sequence[str]) -> list[Row]:
    """What is offered by kind and threshold, each repository with the weights fitted on the others."""
    repositories = sorted({case.id.split("@")[0] for case in cases})
    weights = {
        held: fit([one for one in found if not one.case.id.startswith(f"{held}@")], names) for held in repositories
    }
    rows: list[Row] = []
    for kind in ("repeat", "near"):
        for least in THRESHOLDS:
            verdicts = []
            for case in (case for case in cases if case.kind == kind):
                own = weights[case.id.split("@")[0]]
                picked = chosen([rated(one, own) for one in found if one.case is case], least)
                text = applied("".join(case.after_first), picked)
                verdicts.append(judge(case, lines_of(text, keepends=True)))
            counted = ("expected", "found", "offered", "wrong")
            counts = {name: sum(getattr(one, name) for one in verdicts) for name in counted}
            rows.append({"kind": kind, "from": least, **counts})
    return rows


def fit_ranking(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The commits, such as edits_dev.jsonl.gz.")],
    out: Annotated[Path | None, typer.Option("--out", help="Write the weights to this file.")] = None,
) -> None:
    """Fit the weights with which next edits are ranked, and print what those of other repositories offer in each."""
    cases = load_edit_cases(file)
    found = [one for case in cases for one in examples(case)]
    names = sorted({name for one in found for name in one.candidate.features})
    show(crossed(cases, found, names), False)
    if out:
        out.write_bytes(msgspec.json.format(msgspec.json.encode(fit(found, names)), indent=1) + b"\n")
