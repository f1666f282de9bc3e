"""Meeting: the text to write between two sides of a gap, searched from behind towards the front.

In front all is known: the parser's stacks there, what ends what is open in them, and so how dear it is at least to come
to a state by writing. From behind nothing is known but what is to be read: it is read with a stack of which only the
top is assumed. Where a reduction needs more of the stack, the states that may be below are assumed one by one, and what
leads from such a state to the one above is text to write, until one is the last state of a stack in front (substring
parsing, ``reading``; the search is A*).
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

MOST_ENDED = 400  # stacks that the front may become by ending what is open
MOST_ASSUMED = 16000
MOST_BELOW = 40  # states tried below another one
MOST_FRONTS = 4  # stacks with the same last state
# What a bracket is taken to cost that is opened for one that is closed behind the gap. That is more than it costs at
# least: else all that is cheap is assumed in front of the first of them before anything is in front of the last.
COST_DUE = 4.0
PAIRS = {b"(": b")", b"[": b"]", b"{": b"}"}
OPENING, CLOSING = frozenset({*PAIRS, b"${"}), frozenset(PAIRS.values())


class Start(NamedTuple):
    """A stack in front of what is to be written, the text that leads there, and what that costs."""

    stack: Stack
    text: tuple[bytes, ...] = ()
    cost: float = 0.0


class _Front(NamedTuple):
    """A stack that the front may become, the text for that, and what it costs."""

    cost: float
    serial: int
    stack: Stack
    text: tuple[bytes, ...]


class _Step(NamedTuple):
    """A state that is assumed, what is demanded of those below it, and the text to write behind it.

    ``rank`` is what it costs with the least that it costs to come to the state, and with what is due for the brackets
    still to be closed. Without a demand all is read.
    """

    rank: float
    serial: int
    cost: float
    state: int
    demand: Demand | None
    text: tuple[bytes, ...]


class Bridge:
    """The texts that lead from some stacks to what stands behind a gap."""

    def __init__(
        self, table: ParseTable, pieces: Pieces, ways: Ways, fronts: Iterable[Start], terminals: Sequence[Terminal]
    ) -> None:
        self._table, self._pieces, self._ways = table, pieces, ways
        self._terminals, self._behind = terminals, suffix_reader(table, tuple(terminals))
        self._fronts = self._ended(fronts)
        self._costs = ways.reach({state: fronts[0].cost for state, fronts in self._fronts.items()})
        depth = accumulate(((one.word in OPENING) - (one.word in CLOSING) for one in terminals), initial=0)
        lowest = list(accumulate(depth, min))
        self._due = [COST_DUE * (low - lowest[-1]) for low in lowest]  # from each terminal on

    def _ended(self, starts: Iterable[Start]) -> Mapping[int, list[_Front]]:
        """What the front may become by ending what is open, by its last state."""
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
        """The terminals to write, about the cheapest first."""
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
        """The texts that lead from the front to what is assumed, if all behind the gap is read then."""
        if step.demand is None:  # whatever is below
            yield self._way_to(step.state) + step.text
            return
        for front in self._fronts.get(step.state, ()):
            if self._behind.meets(front.stack, step.demand):
                yield front.text + step.text

    def _next(self, step: _Step) -> Iterator[tuple[float, int, Demand | None, tuple[bytes, ...]]]:
        """What may be assumed after this: a state below, or what is demanded once the reduction is done."""
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
        """The cheapest text that leads from the front to a state."""
        text: tuple[bytes, ...] = ()
        while not (fronts := self._fronts.get(state)) or fronts[0].cost > self._costs[state]:
            ways = self._ways.before(state, self._costs, 1)
            state, piece = min(ways, key=lambda way: self._costs[way[0]] + way[1].cost)
            text = piece.text + text
        return fronts[0].text + text
