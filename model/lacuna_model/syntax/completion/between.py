"""Finds the text to write between the two sides of a gap, by an A* search from the suffix towards the prefix.

On the prefix side the LR stacks are known, and so are the endings of their open constructs and the least cost of
reaching a state by writing. On the suffix side only the terminals are known: they are read with a stack of which only
the top is assumed (substring parsing, see ``suffix``). Where a reduction needs more of the stack, the states that may
be below are assumed one by one. The text that leads from such a state to the one above is written, until a state is the
last of a prefix stack.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, chain
from operator import attrgetter

from lacuna_model.core import work
from lacuna_model.syntax.completion.suffix import NOTHING_REDUCED, Demand, Followed, Suffix
from lacuna_model.syntax.lr.best_first import Way, best_first
from lacuna_model.syntax.lr.insertions import Pieces
from lacuna_model.syntax.lr.parse_table import ParseTable, Stack
from lacuna_model.syntax.lr.shortest import Ways

MAX_ENDED = 400  # stacks that the prefix may become by ending open constructs
MAX_ASSUMED = 8000
MAX_NS = 220_000_000  # of work: of 93 texts that came into a fill, the last was found after 200 ms
MAX_BELOW = 40  # states tried below another state
MAX_FRONTS = 4  # stacks with the same last state
# The estimated cost of opening a bracket that the suffix closes. It exceeds the least cost: otherwise the search would
# try all cheap texts around the first such bracket before it reached the last one.
COST_DUE = 4.0
PAIRS = {b"(": b")", b"[": b"]", b"{": b"}"}
OPENING, CLOSING = frozenset({*PAIRS, b"${"}), frozenset(PAIRS.values())

# An assumed state, and the demand on the states below it; None once the whole suffix is read.
Assumed = tuple[int, Demand | None]


class Bridge:
    """Finds the texts that lead from some stacks to the terminals of a suffix."""

    def __init__(
        self,
        table: ParseTable,
        pieces: Pieces,
        ways: Ways,
        fronts: Iterable[Way[Stack]],
        suffix: Suffix,
    ) -> None:
        self._table, self._pieces, self._ways = table, pieces, ways
        self._behind, self._followed = suffix, Followed(suffix)
        self._fronts = self._ended(fronts)
        self._costs = ways.reach({state: fronts[0].cost for state, fronts in self._fronts.items()})
        depth = accumulate(((one.word in OPENING) - (one.word in CLOSING) for one in suffix.terminals), initial=0)
        lowest = list(accumulate(depth, min))
        self._due = [COST_DUE * (low - lowest[-1]) for low in lowest]  # by terminal, for the rest of the suffix

    def _ended(self, starts: Iterable[Way[Stack]]) -> Mapping[int, list[Way[Stack]]]:
        """The stacks that the prefix may become by ending open constructs, by last state."""
        found: dict[int, list[Way[Stack]]] = defaultdict(list)
        for front in best_first(starts, self._pieces.ended, most=MAX_ENDED):
            if len(found[front.state[-1]]) < MAX_FRONTS:
                found[front.state[-1]].append(front)
        return found

    def texts(self) -> Iterator[tuple[bytes, ...]]:
        """Yield the terminals to write, roughly cheapest first."""
        if not self._behind.terminals:
            fronts = chain.from_iterable(self._fronts.values())
            yield from (front.text for front in sorted(fronts, key=attrgetter("cost")))
            return
        starts = (Way[Assumed]((state, NOTHING_REDUCED)) for state in self._behind.firsts)
        spent, since = 0, work.spent()
        for way in best_first(starts, self._below, self._left, most=MAX_ASSUMED):
            for text in self._joined(way):
                spent += work.spent() - since
                yield text
                since = work.spent()
            if spent + work.spent() - since > MAX_NS:
                return

    def _left(self, assumed: Assumed) -> float:
        """What is to be paid at least: the cost of reaching the state, and of the brackets that the rest closes."""
        state, demand = assumed
        return float(self._costs[state]) + (self._due[demand.place.number] if demand else 0.0)

    def _joined(self, way: Way[Assumed]) -> Iterator[tuple[bytes, ...]]:
        """The texts that lead from the prefix to an assumed state, if the whole suffix is read then."""
        state, demand = way.state
        if demand is None:  # any stack below will do
            yield self._way_to(state) + way.text
            return
        for front in self._fronts.get(state, ()):
            if self._followed.has(front.state, demand):
                yield front.text + way.text

    def _below(self, way: Way[Assumed]) -> Iterator[Way[Assumed]]:
        """The next assumptions: a state below, or the demands once the reduction is done."""
        (state, demand), text, cost = way
        if demand is None:
            return
        if demand.below:
            after = demand._replace(below=demand.below - 1)
            for below, piece in self._ways.before(state, self._costs, MAX_BELOW):
                yield Way((below, after), piece.text + text, cost + piece.cost)
        else:
            yield from (Way((state, after), text, cost) for after in self._followed.demands(state, demand))

    def _way_to(self, state: int) -> tuple[bytes, ...]:
        """The cheapest text that leads from the prefix to a state."""
        text: tuple[bytes, ...] = ()
        while not (fronts := self._fronts.get(state)) or fronts[0].cost > self._costs[state]:
            ways = self._ways.before(state, self._costs, 1)
            state, piece = min(ways, key=lambda way: self._costs[way[0]] + way[1].cost)
            text = piece.text + text
        return fronts[0].text + text
