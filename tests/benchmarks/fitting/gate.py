"""The command ``fit-gate``: fits the gate that judges the beginnings of suggestions.

Fitted are beginnings of what a model wrote at cursors, right or not. Packages are kept apart: each fifth of them is
judged by a gate that was fitted on the others.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import msgspec
import numpy as np
from rich.table import Table
from tests.benchmarks.fitting.cursors import Asked

from lacuna_lsp.suggest.dial import sure_part
from lacuna_model.core.params import Region
from lacuna_model.decode.evidence import Beginning, GapSurroundings, beginnings, numbers
from lacuna_model.decode.gate import Gate, Judgement
from lacuna_model.text.characters import in_word
from lacuna_model.text.diff import num_common
from training.stored.documents import Document
from training.stored.packages import CorpusError

FOLDS = 5
# Beginnings of one fill have much in common: those that are not its first line count half.
OTHERS_COUNT = 0.5
# What the model itself says of a beginning is fitted freely; what stands around it has to earn its weight.
FREE = frozenset(
    ("sum", "least", "first", "end", "margin", "first_margin", "end_margin", "tokens", "is_whole", "line")
) | {f"whole_{name}" for name in ("sum", "least", "first", "end")}
LIGHT, HEAVY = 3.0, 300.0  # the L2 penalties of standardised numbers
STEPS = 30
THRESHOLDS = (0.0, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)


class Example(NamedTuple):
    """A beginning of a fill: its numbers, and whether it is what was typed."""

    one: Beginning
    numbers: dict[str, float]
    is_right: bool


class Case(NamedTuple):
    """What was asked at a cursor, what was typed there, and the beginnings of the fill, shortest first."""

    asked: Asked
    truth: str
    examples: tuple[Example, ...]

    def judged_by(self, gate: Gate) -> Judgement:
        """What a gate says of the fill."""
        found = [example.one for example in self.examples]
        return gate.of(self.asked.fill, found, (example.numbers for example in self.examples))


class Effect(msgspec.Struct, frozen=True):
    """What showing the parts with a probability of at least ``threshold`` does, at all cursors together.

    ``shown`` and ``right`` count suggestions; ``saved`` are the characters of right ones, ``wrong`` the characters of
    first lines behind what they have in common with what was typed.
    """

    threshold: float
    shown: int
    right: int
    saved: int
    wrong: int


def cases(found: Sequence[Asked], documents: Sequence[Document]) -> list[Case]:
    """The fills with what was typed; raises CorpusError where a file is missing or none of them is right."""
    texts = {(one.language, one.package, one.path): one.text for one in documents}
    every = []
    for asked in found:
        place = asked.place
        text = texts.get((place.language, place.package, place.path))
        if text is None:
            raise CorpusError(
                f"{place.package}/{place.path} is not in the corpus: build it as it was when this was asked"
            )
        if asked.fill.strip():
            every.append(_case(asked, text))
    if not any(example.is_right for case in every for example in case.examples):
        raise CorpusError(f"{len(every)} fills, of which none is right: ask at more cursors")
    return every


def _case(asked: Asked, text: str) -> Case:
    before, after = asked.place.around(text)
    truth = asked.place.truth(text)
    at = len(before.encode())
    around = GapSurroundings.of((before + after).encode(), Region(at, at, max_lines=0 if asked.is_block else 1))
    examples = tuple(
        Example(one, numbers(around, asked.fill, asked.written, one), is_right(asked, one, truth))
        for one in beginnings(asked.fill)
    )
    return Case(asked, truth, examples)


def is_right(asked: Asked, one: Beginning, truth: str) -> bool:
    """Whether a beginning of a fill is what was typed; an editor's closers may stand for the end of its first line."""
    shown = asked.fill.encode()[: one.end].decode()
    if not one.is_whole:
        after = truth[len(shown) : len(shown) + 1]
        return truth.startswith(shown) and not (in_word(after) and in_word(shown[-1:]))
    first, *rest = (line.rstrip() for line in shown.split("\n"))
    wanted, *below = (line.rstrip() for line in truth.split("\n"))
    if asked.place.closers and not rest:
        return wanted == first or wanted.startswith(first + asked.place.closers)
    return wanted == first and below[: len(rest)] == rest


def fit(found: Sequence[Case]) -> Gate:
    """A gate fitted on these cases: a logistic regression, solved by Newton's method."""
    examples = [example for case in found for example in case.examples]
    names = list(examples[0].numbers)
    rows = np.array([[example.numbers[name] for name in names] for example in examples])
    right = np.array([example.is_right for example in examples], np.float64)
    counts = np.array([1.0 if example.one.is_whole and not example.one.line else OTHERS_COUNT for example in examples])
    middle, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    known = np.column_stack([np.ones(len(rows)), (rows - middle) / spread])
    penalty = np.diag([0.0, *(LIGHT if name in FREE else HEAVY for name in names)])
    found_weights = np.zeros(len(names) + 1)
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-known @ found_weights))
        slope = known.T @ (counts * (likely - right)) + penalty @ found_weights
        curve = (known * (counts * likely * (1 - likely))[:, None]).T @ known + penalty
        found_weights -= np.linalg.solve(curve + 1e-9 * np.eye(len(curve)), slope)
    weights = found_weights[1:] / spread
    constant = float(found_weights[0] - weights @ middle)
    kept = {name: float(f"{weight:.5g}") for name, weight in zip(names, weights.tolist(), strict=True)}
    return Gate(round(constant, 5), kept)


def crossed(found: Sequence[Case], seed: int = 0) -> list[Judgement]:
    """What gates say of each case that were fitted on the cases of other packages."""
    packages = sorted({case.asked.place.package for case in found})
    Random(seed).shuffle(packages)
    judgements: dict[int, Judgement] = {}
    for fold in range(FOLDS):
        own = set(packages[fold::FOLDS])
        gate = fit([case for case in found if case.asked.place.package not in own])
        for number, case in enumerate(found):
            if case.asked.place.package in own:
                judgements[number] = case.judged_by(gate)
    return [judgements[number] for number in range(len(found))]


def effect(found: Sequence[Case], judgements: Sequence[Judgement], threshold: float) -> Effect:
    """What a threshold does."""
    shown = right = saved = wrong = 0
    for case, judgement in zip(found, judgements, strict=True):
        part = sure_part(case.asked.fill, judgement.lines, judgement.words, threshold)
        if not part.strip():
            continue
        shown += 1
        size = len(part.encode())
        first, meant = part.split("\n", 1)[0], case.truth.split("\n", 1)[0]
        if any(example.one.end == size and example.is_right for example in case.examples):
            right += 1
            saved += len(part.strip())
        elif meant.startswith(first):
            right += 1
            saved += len(first.strip())
        else:
            wrong += len(first) - num_common(first, meant)
    return Effect(threshold, shown, right, saved, wrong)


def table(effects: Sequence[Effect]) -> Table:
    """One row a threshold."""
    result = Table(title="what is shown from a probability on, packages kept apart")
    for column in ("probability", "shown", "right", "characters saved", "wrong characters"):
        result.add_column(column, justify="right")
    for one in effects:
        share = f"{one.right / max(one.shown, 1):.0%}"
        result.add_row(f"{one.threshold:.2f}", str(one.shown), share, str(one.saved), str(one.wrong))
    return result
