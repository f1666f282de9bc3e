"""Finds the text to write between the two sides of a gap, by an A* search from the suffix towards the prefix.

On the prefix side the LR stacks are known, and so are the endings of their open constructs and the least cost of
reaching a state by writing. On the suffix side only the terminals are known: they are read with a stack of which only
the top is assumed (substring parsing, see ``readings``). Where a reduction needs more of the stack, the states that may
be below are assumed one by one. The text that leads from such a state to the one above is written, until a state is the
last of a prefix stack.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, count
from typing import NamedTuple

from lacuna_model.syntax.completion.readings import MOST_STATES, NOTHING_REDUCED, Demand, suffix_reader
from lacuna_model.syntax.lr.insertions import Pieces
from lacuna_model.syntax.lr.parse_table import ParseTable, Stack, Terminal
from lacuna_model.syntax.lr.shortest import Ways

MOST_ENDED = 400  # stacks that the prefix may become by ending open constructs
MOST_ASSUMED = 16000
MOST_BELOW = 40  # states tried below another state
MOST_FRONTS = 4  # stacks with the same last state
# The estimated cost of opening a bracket that the suffix closes. It exceeds the least cost: otherwise the search would
# try all cheap texts around the first such bracket before it reached the last one.
COST_DUE = 4.0
PAIRS = {b"(": b")", b"[": b"]", b"{": b"}"}
OPENING, CLOSING = frozenset({*PAIRS, b"${"}), frozenset(PAIRS.values())


class Start(NamedTuple):
    """A stack before the text to write, the text that leads to this stack, and the cost of that text."""

    stack: Stack
    text: tuple[bytes, ...] = ()
    cost: float = 0.0


class _Front(NamedTuple):
    """A stack that the prefix may become, the text to write for that, and its cost."""

    cost: float
    serial: int
    stack: Stack
    text: tuple[bytes, ...]


class _Step(NamedTuple):
    """An assumed state, the demand on the states below it, and the text to write after it.

    ``rank`` is the cost with the least cost of reaching the state, and an estimate for the brackets that the rest of
    the suffix closes. ``demand`` is None once the whole suffix is read.
    """

    rank: float
    serial: int
    cost: float
    state: int
    demand: Demand | None
    text: tuple[bytes, ...]


class Bridge:
    """Finds the texts that lead from some stacks to the terminals of a suffix."""

    def __init__(
        self, table: ParseTable, pieces: Pieces, ways: Ways, fronts: Iterable[Start], terminals: Sequence[Terminal]
    ) -> None:
        self._table, self._pieces, self._ways = table, pieces, ways
        self._terminals, self._behind = terminals, suffix_reader(table, tuple(terminals))
        self._fronts = self._ended(fronts)
        self._costs = ways.reach({state: fronts[0].cost for state, fronts in self._fronts.items()})
        depth = accumulate(((one.word in OPENING) - (one.word in CLOSING) for one in terminals), initial=0)
        lowest = list(accumulate(depth, min))
        self._due = [COST_DUE * (low - lowest[-1]) for low in lowest]  # by terminal, for the rest of the suffix

    def _ended(self, starts: Iterable[Start]) -> Mapping[int, list[_Front]]:
        """The stacks that the prefix may become by ending open constructs, by last state."""
        serial = count()
        waiting = [_Front(start.cost, next(serial), start.stack, start.text) for start in starts]
        heapq.heapify(waiting)
        seen: set[Stack] = set()
        found: dict[int, list[_Front]] = defaultdict(list)
        while waiting and len(seen) < MOST_ENDED:
            front = heapq.heappop(waiting)
            if front.stack in seen:
                continue
            seen.add(front.stack)
            if len(found[front.stack[-1]]) < MOST_FRONTS:
                found[front.stack[-1]].append(front)
            for ending in self._pieces.endings(front.stack[-1]):
                if after := self._table.reduce(front.stack, ending.reduction):
                    cost = front.cost + ending.cost
                    heapq.heappush(waiting, _Front(cost, next(serial), after, front.text + ending.text))
        return found

    def texts(self) -> Iterator[tuple[bytes, ...]]:
        """Yield the terminals to write, roughly cheapest first."""
        if not self._terminals:
            yield from (front.text for front in sorted(chain.from_iterable(self._fronts.values())))
            return
        waiting = [
            _Step(self._costs[state] + self._due[0], 0, 0.0, state, NOTHING_REDUCED, ())
            for state in self._behind.firsts
            if self._costs[state] < math.inf
        ]
        heapq.heapify(waiting)
        serial = count(1)
        seen: set[tuple[int, Demand | None]] = set()
        most = self._behind.states_read + MOST_STATES
        while waiting and len(seen) < MOST_ASSUMED and self._behind.states_read < most:
            step = heapq.heappop(waiting)
            if (step.state, step.demand) in seen:
                continue
            seen.add((step.state, step.demand))
            yield from self._joined(step)
            for cost, state, demand, text in self._next(step):
                if (state, demand) not in seen:
                    rank = cost + self._costs[state] + (self._due[demand.place.number] if demand else 0.0)
                    heapq.heappush(waiting, _Step(rank, next(serial), cost, state, demand, text + step.text))

    def _joined(self, step: _Step) -> Iterator[tuple[bytes, ...]]:
        """The texts that lead from the prefix to an assumed state, if the whole suffix is read then."""
        if step.demand is None:  # any stack below will do
            yield self._way_to(step.state) + step.text
            return
        for front in self._fronts.get(step.state, ()):
            if self._behind.meets(front.stack, step.demand):
                yield front.text + step.text

    def _next(self, step: _Step) -> Iterator[tuple[float, int, Demand | None, tuple[bytes, ...]]]:
        """The next assumptions: a state below, or the demands once the reduction is done."""
        state, demand = step.state, step.demand
        if demand is None:
            return
        if demand.below:
            after = demand._replace(below=demand.below - 1)
            for below, piece in self._ways.before(state, self._costs, MOST_BELOW):
                if self._costs[below] < math.inf:
                    yield step.cost + piece.cost, below, after, piece.text
        else:
            yield from ((step.cost, state, after, ()) for after in self._behind.demands(state, demand))

    def _way_to(self, state: int) -> tuple[bytes, ...]:
        """The cheapest text that leads from the prefix to a state."""
        text: tuple[bytes, ...] = ()
        while not (fronts := self._fronts.get(state)) or fronts[0].cost > self._costs[state]:
            ways = self._ways.before(state, self._costs, 1)
            state, piece = min(ways, key=lambda way: self._costs[way[0]] + way[1].cost)
            text = piece.text + text
        return fronts[0].text + text
