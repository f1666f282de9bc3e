"""The gate of open delivery: how likely each beginning of a suggestion is to be what the person would have typed.

It is an ensemble of small trees over the numbers of :mod:`.evidence`, fitted at cursors of held-out packages by
``python -m tests.benchmarks fit-gate`` (gradient boosting, as in LightGBM, NeurIPS 2017).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import accumulate
from typing import NamedTuple

import msgspec
import numpy as np

from lacuna_model.decode.evidence import Surroundings, Written, beginnings, numbers


class Judgement(NamedTuple):
    """How likely a fill is right: up to the end of each of its ``lines``, and up to ``words`` of the first one.

    Of a word there are the characters up to its end, and the probability (0..1). Closed delivery judges no words.
    """

    lines: tuple[float, ...]
    words: tuple[tuple[int, float], ...] = ()


class Tree(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A binary tree: node n goes to ``yes`` where the number ``names[n]`` is at most ``limits[n]``, else to ``no``.

    A negative child is a leaf: ``leaves[~child]`` are the log-odds that it adds. The root is node 0.
    """

    names: tuple[int, ...]
    limits: tuple[float, ...]
    yes: tuple[int, ...]
    no: tuple[int, ...]
    leaves: tuple[float, ...]

    @property
    def depth(self) -> int:
        """How many nodes the longest way from the root to a leaf has."""
        found = [0] * len(self.names)
        for node in reversed(range(len(self.names))):  # children come behind their parents
            found[node] = 1 + max(found[child] if child >= 0 else 0 for child in (self.yes[node], self.no[node]))
        return found[0]


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Trees over the numbers with these ``names``, whose log-odds are added."""

    names: tuple[str, ...]
    trees: tuple[Tree, ...]


class Gate:
    """Judges the beginnings of a fill by its weights.

    The nodes and leaves of all trees are in one table: ``name``, ``limit`` and two ``children`` of each, and ``value``.
    A leaf is its own child.
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        size = sum(len(tree.names) + len(tree.leaves) for tree in weights.trees)
        self._name, self._limit, self._value = np.zeros(size, np.intp), np.zeros(size), np.zeros(size)
        self._children = np.repeat(np.arange(size), 2)
        self._roots, self._depth = np.zeros(len(weights.trees), np.intp), 0
        begin = 0
        for number, tree in enumerate(weights.trees):
            self._roots[number] = begin
            inner = slice(begin, begin + len(tree.names))
            self._name[inner], self._limit[inner] = tree.names, tree.limits
            for node, children in enumerate(zip(tree.no, tree.yes, strict=True)):
                own = [begin + (child if child >= 0 else len(tree.names) + ~child) for child in children]
                self._children[2 * (begin + node) : 2 * (begin + node) + 2] = own
            self._value[inner.stop : inner.stop + len(tree.leaves)] = tree.leaves
            self._depth = max(self._depth, tree.depth)
            begin = inner.stop + len(tree.leaves)

    def probabilities(self, rows: Sequence[Mapping[str, float]]) -> list[float]:
        """The probability (0..1) that each beginning is right, whose numbers are given."""
        names = self.weights.names
        known = np.array([row[name] for row in rows for name in names])
        begins = np.arange(0, len(known), len(names))[:, None]
        node = np.broadcast_to(self._roots, (len(rows), len(self._roots)))
        for _ in range(self._depth):
            yes = known[begins + self._name[node]] <= self._limit[node]
            node = self._children[2 * node + yes]
        return (1 / (1 + np.exp(-self._value[node].sum(axis=1)))).tolist()  # type: ignore[no-any-return]

    def judged(self, fill: str, written: Written, around: Surroundings) -> Judgement:
        """How likely a fill is right. A longer beginning is never likelier than a shorter one."""
        return self.of([numbers(around, fill, written, one) for one in beginnings(fill)], fill)

    def of(self, rows: Sequence[Mapping[str, float]], fill: str) -> Judgement:
        """How likely a fill is right, by the numbers of its beginnings."""
        pairs = list(zip(beginnings(fill), accumulate(self.probabilities(rows), min), strict=True))
        text = fill.encode()
        return Judgement(
            tuple(sure for one, sure in pairs if one.is_whole),
            tuple((len(text[: one.end].decode()), sure) for one, sure in pairs if not one.is_whole),
        )


@cache
def shipped() -> Gate:
    """The gate that ships with the package."""
    text = resources.files("lacuna_model.decode").joinpath("gate.json").read_bytes()
    return Gate(msgspec.json.decode(text, type=Weights))
