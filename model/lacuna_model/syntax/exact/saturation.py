"""The LR stacks from which some text leads to a suffix being read to its end: a set that is saturated, with costs.

The stacks from which a pushdown system reaches a regular set of stacks are a regular set, too (pre*: Bouajjani, Esparza
and Maler, 1997). Here the set is kept as pairs of a state and a ``Demand``: a stack is in the set if its last state has
a pair whose demand the states below meet. Pairs are found cheapest first (Dijkstra, 1959), and only as far as a
question needs them.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

from lacuna_model.syntax.exact.suffix_reader import BEGIN, Demand, SuffixReader
from lacuna_model.syntax.lr.insertions import Piece

Text = tuple[bytes, ...]
# The cheapest text of a symbol that leads to a state, by the state before.
StepsTo = Mapping[int, Sequence[tuple[int, Piece]]]


class Pair(NamedTuple):
    """Stacks with this last ``state`` whose states below meet the ``demand``; None for any stack."""

    state: int
    demand: Demand | None


class Way(NamedTuple):
    """What follows a pair: the cost of all text up to the suffix, the text of the next symbol, and the next pair."""

    cost: float
    text: Text
    after: Pair | None


class _Waiting(NamedTuple):
    """The pairs that follow from a found one and are not looked at yet: those from ``number`` on, cheapest first."""

    cost: float
    serial: int
    after: Pair
    demand: Demand | None
    steps: Sequence[tuple[int, Piece]]
    number: int


class Saturation:
    """The pairs of one suffix, found one by one.

    ``at`` holds the pairs found so far by state, cheapest first, each with its cost. ``least`` is the cost that the
    next pair has at least; infinite when all are found.
    """

    def __init__(self, reader: SuffixReader, steps: StepsTo) -> None:
        self.reader, self._steps = reader, steps
        self.at: dict[int, list[tuple[float, Demand | None]]] = defaultdict(list)
        self._ways: dict[Pair, Way] = {}
        self._serial = count()
        self._new: list[tuple[Pair, Way]] = []
        self._began = False
        self._waiting: list[_Waiting] = []

    @property
    def least(self) -> float:
        """The least cost of the pairs that are not found yet."""
        if not self._began:
            return 0.0
        if self._new:
            return self._new[-1][1].cost
        return self._waiting[0].cost if self._waiting else math.inf

    def grow(self) -> int | None:
        """Find the next pair and return its state; None if all are found."""
        if not self._began:
            self._began = True
            self._new = [(Pair(state, BEGIN), Way(0.0, (), None)) for state in self.reader.firsts]
        while self._new or self._waiting:
            pair, way = self._new.pop() if self._new else self._next()
            if pair not in self._ways:
                self._ways[pair] = way
                self.at[pair.state].append((way.cost, pair.demand))
                self._follow(pair, way.cost)
                return pair.state
        return None

    def _next(self) -> tuple[Pair, Way]:
        entry = self._waiting[0]
        state, piece = entry.steps[entry.number]
        number = entry.number + 1
        if number < len(entry.steps):
            spent = entry.cost - piece.cost + entry.steps[number][1].cost
            heapq.heapreplace(self._waiting, entry._replace(cost=spent, serial=next(self._serial), number=number))
        else:
            heapq.heappop(self._waiting)
        return Pair(state, entry.demand), Way(entry.cost, piece.text, entry.after)

    def _follow(self, pair: Pair, cost: float) -> None:
        """Note what a pair follows from: the states before it, or what is read of the suffix after its reduction."""
        state, demand = pair
        if demand is not None and not demand.below:
            self._new += [(Pair(state, one), Way(cost, (), pair)) for one in self.reader.demands(state, demand)]
        elif steps := self._steps[state]:
            below = demand and Demand(demand.below - 1, demand.symbol, demand.place)
            spent = cost + steps[0][1].cost
            heapq.heappush(self._waiting, _Waiting(spent, next(self._serial), pair, below, steps, 0))

    def text(self, state: int, demand: Demand | None) -> Text:
        """Return the cheapest text that leads from a stack of a found pair to the suffix."""
        pair: Pair | None = Pair(state, demand)
        parts: list[bytes] = []
        while pair is not None:
            _, text, pair = self._ways[pair]
            parts += text
        return tuple(parts)
