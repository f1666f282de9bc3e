"""The shortest texts of a grammar: of its terminals and symbols, and of the endings of its states."""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise

import numpy as np
from numpy.typing import NDArray

from lacuna_model.syntax.lr.grammar_tables import REDUCE, Action
from lacuna_model.syntax.lr.insertions import (
    COST_CLOSER,
    COST_MARK,
    COST_NAME,
    COST_NEWLINE,
    COST_OTHER,
    Ending,
    Insertion,
    Piece,
)
from lacuna_model.syntax.lr.parse_table import ParseTable

MAX_ENDINGS = 4
ENDED = 0.6  # a factor: what the grammar forces costs less than a choice
# Texts to try for a terminal that has no text of its own.
SAMPLES = (b"_", b"0", b"'x'", b"<x>", b"#x", b"$x")
MAX_PLACES = 3
NOT_WRITTEN = frozenset({"'", "`"})  # strings are written with double quotes
MARKS = frozenset({"(", "{", "[", ",", ":", "=", "=>", ".", "|", ":=", '"'})
CLOSERS = frozenset({")", "]", "}", ";", ">"})
NO_TEXT = Piece(0.0, ())


class Graph:
    """The transitions between the states of a grammar.

    ``following`` holds by symbol the states that it leads to. ``before`` holds by state and symbol the states from
    which the symbol leads there. ``reduced`` holds by state its reductions: a symbol, and the number of its parts.
    """

    def __init__(self, table: ParseTable) -> None:
        edges, reductions = table.edges()
        edges = edges[np.lexsort((edges[:, 0], edges[:, 1], edges[:, 2]))]
        self._reads = np.zeros(edges.max(axis=0)[:2] + 1, bool)
        self._reads[edges[:, 0], edges[:, 1]] = True
        self.following: dict[int, list[int]] = {}
        self.before: dict[int, dict[int, NDArray[np.int32]]] = {}
        first = np.flatnonzero(np.diff(edges[:, 1:], axis=0, prepend=-1).any(axis=1))
        for begin, stop in pairwise([*first.tolist(), len(edges)]):
            _, symbol, state = edges[begin].tolist()
            self.before.setdefault(state, {})[symbol] = edges[begin:stop, 0]
            self.following.setdefault(symbol, []).append(state)
        self.reduced: dict[int, set[tuple[int, int]]] = {}
        for state, symbol, parts in reductions:
            self.reduced.setdefault(state, set()).add((symbol, parts))

    def is_read(self, symbol: int, states: NDArray[np.int32]) -> bool:
        """Whether a symbol can be read in any of ``states``."""
        return symbol < self._reads.shape[1] and bool(self._reads[states, symbol].any())

    def places(self, symbol: int) -> list[int]:
        """Return some of the states in which a symbol can be read."""
        return [int(self.before[state][symbol][0]) for state in self.following.get(symbol, [])[:MAX_PLACES]]


def written(table: ParseTable, operand: bytes, graph: Graph) -> list[Insertion]:
    """Return the terminals that may be written."""
    found = (_written(table, terminal, operand, graph.places(terminal)) for terminal in table.terminals)
    return [one for one in found if one is not None]


def _written(table: ParseTable, terminal: int, operand: bytes, states: Sequence[int]) -> Insertion | None:
    """A terminal as text: its name, or else a sample that the lexer reads as this terminal in some of its states."""
    grammar = table.grammar
    name = grammar.node_kind_for_id(terminal) or ""
    if name.endswith("automatic_semicolon") or name.isspace():
        return Insertion(terminal, b"\n", COST_NEWLINE)
    if grammar.node_kind_is_named(terminal) or not grammar.node_kind_is_visible(terminal):
        for text, cost in ((operand, COST_NAME), (b"\n", COST_NEWLINE), *((one, COST_OTHER) for one in SAMPLES)):
            if any(_reads(table, state, terminal, text) for state in states):
                return Insertion(terminal, text, cost)
        return None
    if name in NOT_WRITTEN or not name:
        return None
    cost = COST_CLOSER if name in CLOSERS else COST_MARK if name in MARKS else COST_OTHER
    return Insertion(terminal, name.encode(), cost)


def _reads(table: ParseTable, state: int, terminal: int, text: bytes) -> bool:
    """Whether the lexer reads a text as a terminal in a state.

    A line end does not count if a brace is read as the same terminal, which then matches any text.
    """
    is_all = text == b"\n" and table.token(state, b"}") == terminal
    return table.token(state, text) == terminal and not is_all


class Shortest:
    """The shortest text of each symbol, and of the endings of each state.

    Both are found for a whole grammar at once, cheapest first, with Knuth's generalization of Dijkstra's algorithm
    (1977): the text of a symbol is that of its first part and of the rest.
    """

    def __init__(self, terminals: Iterable[Insertion], graph: Graph) -> None:
        self._graph = graph
        self.symbols: dict[int, Piece] = {}
        self._steps: dict[int, list[tuple[Piece, NDArray[np.int32]]]] = {}  # by state: pieces to it, from which states
        self._rests: dict[int, dict[tuple[int, int], Piece]] = {}  # by state, then by symbol and parts already read
        self._serial = count()
        self._waiting: list[tuple[float, int, int, tuple[bytes, ...]]] = []
        for one in terminals:
            self._wait(one.terminal, Piece(one.cost, (one.text,)))
        for state, reduced in graph.reduced.items():
            for symbol, parts in reduced:
                if parts:
                    self._rests.setdefault(state, {})[symbol, parts] = NO_TEXT
                else:
                    self._wait(symbol, NO_TEXT)
        self._settle()

    @property
    def endings(self) -> dict[int, list[Ending]]:
        """The endings of each state, cheapest first, one for each symbol that it may reduce to."""
        return {state: self._endings(rests) for state, rests in self._rests.items()}

    def _endings(self, rests: dict[tuple[int, int], Piece]) -> list[Ending]:
        cheapest = sorted(rests.items(), key=lambda rest: rest[1].cost)[:MAX_ENDINGS]
        return [Ending(piece.text, ENDED * piece.cost, Action(REDUCE, *key)) for key, piece in cheapest]

    def _settle(self) -> None:
        while self._waiting:
            cost, _, symbol, text = heapq.heappop(self._waiting)
            if symbol in self.symbols:
                continue
            step = self.symbols[symbol] = Piece(cost, text)
            for state in self._graph.following.get(symbol, ()):
                before = self._graph.before[state][symbol]
                self._steps.setdefault(state, []).append((step, before))
                for key, rest in tuple(self._rests.get(state, {}).items()):
                    if key[1] > 1 or key[0] not in self.symbols:
                        self._take_back(step, rest, before, key)

    def _take_back(self, step: Piece, rest: Piece, states: NDArray[np.int32], key: tuple[int, int]) -> None:
        """Keep a step and the rest after it as the rest in the preceding states, or as a whole symbol."""
        symbol, parts = key
        cost = step.cost + rest.cost
        if parts == 1:
            if symbol not in self.symbols and self._graph.is_read(symbol, states):
                self._wait(symbol, Piece(cost, step.text + rest.text))
            return
        piece, key = Piece(cost, step.text + rest.text), (symbol, parts - 1)
        for state in states.tolist():
            rests = self._rests.setdefault(state, {})
            if key not in rests or cost < rests[key].cost:
                rests[key] = piece
                for earlier, before in self._steps.get(state, ()):
                    self._take_back(earlier, piece, before, key)

    def _wait(self, symbol: int, piece: Piece) -> None:
        if symbol not in self.symbols:
            heapq.heappush(self._waiting, (piece.cost, next(self._serial), symbol, piece.text))


class Ways:
    """The ways to each state: texts of whole symbols, and the states in which they begin."""

    def __init__(self, graph: Graph, symbols: Mapping[int, Piece]) -> None:
        self._steps: dict[int, list[tuple[Piece, NDArray[np.int32]]]] = {}
        for state, before in graph.before.items():
            steps = [(symbols[symbol], begins) for symbol, begins in before.items() if symbol in symbols]
            if steps:
                self._steps[state] = sorted(steps, key=lambda step: step[0].cost)
        steps = [step for own in self._steps.values() for step in own]
        sizes = [sum(len(begins) for _, begins in own) for own in self._steps.values()]
        # All steps: the states they begin in, and costs. By target state: where its steps begin, and the state.
        self._begins = np.concatenate([begins for _, begins in steps])
        self._costs = np.concatenate([np.full(len(begins), piece.cost) for piece, begins in steps])
        self._bounds = np.cumsum([0, *sizes[:-1]])
        self._states = np.array(list(self._steps))

    @property
    def states(self) -> Iterable[int]:
        """All states that a step leads to."""
        return self._steps

    def reach(self, known: Mapping[int, float]) -> NDArray[np.float64]:
        """Return the least cost [states] of reaching each state by writing, given that of some; infinite for none."""
        found = np.full(max(int(self._states.max()), int(self._begins.max()), *known) + 1, np.inf)
        for state, cost in known.items():
            found[state] = cost
        while True:
            least = np.minimum(
                found[self._states], np.minimum.reduceat(found[self._begins] + self._costs, self._bounds)
            )
            if (least == found[self._states]).all():
                return found
            found[self._states] = least

    def before(self, state: int, costs: NDArray[np.float64], most: int) -> Iterator[tuple[int, Piece]]:
        """Yield preceding states and the text in between: cheapest text first, ``most`` states for each."""
        for piece, begins in self._steps.get(state, ()):
            order = np.argsort(costs[begins], kind="stable")[:most]
            yield from ((int(begins[place]), piece) for place in order)
