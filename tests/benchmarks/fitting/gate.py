"""The command ``fit-gate``: fits the gate that judges the beginnings of suggestions.

Fitted are beginnings of what a model wrote at cursors, right or not. Packages are kept apart: each fifth of them is
judged by a gate that was fitted on the others.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import lightgbm
import msgspec
import numpy as np
import typer
from tests.benchmarks.figures import show
from tests.benchmarks.fitting.cursors import Asked, ask, held_out_documents
from tests.benchmarks.records import Records

from lacuna_lsp.suggest.triggers import sure_part
from lacuna_model.commands import output
from lacuna_model.core.params import Region
from lacuna_model.decode.gate import Beginning, GapSurroundings, Gate, Judgement, Node, beginnings, numbers
from lacuna_model.engine import Engine
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_model.text.diff import num_common
from lacuna_model.text.lines import in_word
from training.options import CORPUS, CorpusOption, ModelOption, ThreadsOption
from training.packages import CorpusError
from training.stored import Document

FOLDS = 5
# Beginnings of one fill have much in common: those that are not its first line count half.
OTHERS_COUNT = 0.5
TREES = 150
OPTIONS = {
    "objective": "binary",
    "num_leaves": 6,
    "learning_rate": 0.05,
    "min_data_in_leaf": 60,
    "feature_fraction": 0.6,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 10.0,
    "num_threads": 1,
    "seed": 1,
    "verbose": -1,
}
THRESHOLDS = (0.0, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8)


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
    around = GapSurroundings((before + after).encode(), Region(at, at))
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
    """A gate fitted on these cases, by gradient boosting."""
    examples = [example for case in found for example in case.examples]
    names = tuple(examples[0].numbers)
    rows = np.array([[example.numbers[name] for name in names] for example in examples])
    right = np.array([example.is_right for example in examples], np.float64)
    counts = np.array([1.0 if example.one.is_whole and not example.one.line else OTHERS_COUNT for example in examples])
    model = lightgbm.train(OPTIONS, lightgbm.Dataset(rows, right, weight=counts), TREES)
    nodes = list[Node]()
    trees = model.dump_model()["tree_info"]
    return Gate(names, tuple(_add(one["tree_structure"], nodes) for one in trees), tuple(nodes))


def _add(node: dict[str, Any], nodes: list[Node]) -> int:
    """Adds one of LightGBM's nodes and all below it; returns its number."""
    number = len(nodes)
    nodes.append(Node(0, 0.0, number, number, round(float(node.get("leaf_value", 0.0)), 4)))
    if "leaf_value" not in node:
        yes, no = (_add(node[child], nodes) for child in ("left_child", "right_child"))
        nodes[number] = Node(int(node["split_feature"]), float(f"{node['threshold']:.5g}"), yes, no, 0.0)
    return number


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


def fit_gate(
    corpus: CorpusOption = CORPUS,
    records: Annotated[
        Path, typer.Option("--records", help="Keep what the models write in this JSONL file, and go on from it.")
    ] = Path("cursors.jsonl"),
    out: Annotated[Path, typer.Option("--out", help="Write the gate to this file.")] = Path("gate.json"),
    cursors: Annotated[
        int, typer.Option(min=0, help="Ask until so many cursors of this model are known; 0: fit only.")
    ] = 10_000,
    threads: ThreadsOption = 0,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fit the gate of suggestions at cursors of held-out files, and show its effect in packages not seen."""
    documents = held_out_documents(corpus)
    with Records(records, Asked) as kept:
        if cursors:
            ask(documents, Engine.load(model, threads=threads), kept, cursors)
    every = cases(kept.found, documents)
    judgements = crossed(every)
    effects = [msgspec.structs.asdict(effect(every, judgements, one)) for one in THRESHOLDS]
    show(effects, False, "what is shown from a probability on, packages kept apart")
    out.write_bytes(msgspec.json.encode(fit(every)) + b"\n")
    output.say(f"wrote {out}; the engine reads model/lacuna_model/decode/gate.json")
