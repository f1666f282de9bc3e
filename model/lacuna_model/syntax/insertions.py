"""What may be written in a state of a grammar, and the shortest texts between states.

A terminal is chosen by what it costs, and that by how much it adds: names and closers are cheap, openers and marks
dearer, operators and other words only where little else may stand.
"""

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import count, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna_model.syntax.grammar_tables import REDUCE, Action
from lacuna_model.syntax.languages import Language
from lacuna_model.syntax.parse_table import ParseTable

MOST_ENDINGS = 4
ENDED = 0.6  # what the grammar forces costs less than what is chosen
MOST_INSERTED = 14
# What the lexer may take for a terminal that has no text of its own.
SAMPLES = (b"_", b"0", b"'x'", b"<x>", b"#x", b"$x")
MOST_PLACES = 3
# What makes a longer expression of one that may stand there as it is.
OPERATOR = re.compile(rb"[-+*/%^&~@]+=?|[=!<>]==?|&&=?|\|\|=?|<<=?|>>>?=?|\?\?=?|&\^=?|<-|\.\.[.=]?|//=?|\|=|<=>|<>")
WORD = re.compile(rb"[\w$\x80-\xff]")
NOT_WRITTEN = frozenset({"'", "`"})  # a string is written with the other quotes
MARKS = frozenset({"(", "{", "[", ",", ":", "=", "=>", ".", "|", ":=", '"'})
CLOSERS = frozenset({")", "]", "}", ";", ">"})
COST_NAME = COST_CLOSER = 1.0
COST_NEWLINE = 1.2
COST_MARK = COST_WORD = 2.0
COST_OTHER = 3.0
FEW = 3
FEW_FACTORS = (1.0, 0.1, 0.4, 0.4)  # by the number of choices
FEW_FACTOR = 0.3


@dataclass(frozen=True, slots=True)
class Insertion:
    """A terminal that may be written, as text, and what that costs."""

    terminal: int
    text: bytes
    cost: float


@dataclass(frozen=True, slots=True)
class Ending:
    """Terminals to write, what they cost, and the reduction behind them, of states below the one they begin in."""

    text: tuple[bytes, ...]
    cost: float
    reduction: Action


class Graph:
    """How the states of a grammar follow on each other.

    ``behind`` are the states that a symbol leads to, ``before`` those that it does so from, by state and symbol, and
    ``reduced`` what a state reduces: symbols, and how many others each is made of.
    """

    def __init__(self, table: ParseTable) -> None:
        edges, reductions = table.edges()
        edges = edges[np.lexsort((edges[:, 0], edges[:, 1], edges[:, 2]))]
        self._reads = np.zeros(edges.max(axis=0)[:2] + 1, bool)
        self._reads[edges[:, 0], edges[:, 1]] = True
        self.behind: dict[int, list[int]] = {}
        self.before: dict[int, dict[int, NDArray[np.int32]]] = {}
        first = np.flatnonzero(np.diff(edges[:, 1:], axis=0, prepend=-1).any(axis=1))
        for begin, stop in pairwise([*first.tolist(), len(edges)]):
            _, symbol, state = edges[begin].tolist()
            self.before.setdefault(state, {})[symbol] = edges[begin:stop, 0]
            self.behind.setdefault(symbol, []).append(state)
        self.reduced: dict[int, set[tuple[int, int]]] = {}
        for state, symbol, parts in reductions:
            self.reduced.setdefault(state, set()).add((symbol, parts))

    def is_read(self, symbol: int, states: NDArray[np.int32]) -> bool:
        """Whether a symbol may come in one of some states."""
        return symbol < self._reads.shape[1] and bool(self._reads[states, symbol].any())

    def places(self, symbol: int) -> list[int]:
        """Some of the states that a symbol may come in."""
        return [int(self.before[state][symbol][0]) for state in self.behind.get(symbol, [])[:MOST_PLACES]]


class Piece(NamedTuple):
    """Terminals as texts, and what they cost."""

    cost: float
    text: tuple[bytes, ...]


NO_TEXT = Piece(0.0, ())


class Insertions:
    """What may be written in each state of a grammar."""

    def __init__(self, table: ParseTable, operand: bytes, graph: Graph) -> None:
        self._table = table
        self._known = {
            one.terminal: one
            for terminal in table.terminals
            if (one := self._written(terminal, operand, graph.places(terminal)))
        }
        self._at: dict[int, list[Insertion]] = {}
        self._all_at: dict[int, list[Insertion]] = {}
        self._by_begin: dict[bytes, list[Insertion]] = {}
        for one in self._known.values():
            if len(one.text) > 1 and not one.text.isspace():
                self._by_begin.setdefault(one.text[:1], []).append(one)

    def _written(self, terminal: int, operand: bytes, states: Sequence[int]) -> Insertion | None:
        """A terminal as text: what it is named after, or else what the lexer takes for it in some of its states."""
        grammar = self._table.grammar
        name = grammar.node_kind_for_id(terminal) or ""
        if name.endswith("automatic_semicolon") or name.isspace():
            return Insertion(terminal, b"\n", COST_NEWLINE)
        if grammar.node_kind_is_named(terminal) or not grammar.node_kind_is_visible(terminal):
            for text, cost in ((operand, COST_NAME), (b"\n", COST_NEWLINE), *((one, COST_OTHER) for one in SAMPLES)):
                if any(self._reads(state, terminal, text) for state in states):
                    return Insertion(terminal, text, cost)
            return None
        if name in NOT_WRITTEN or not name:
            return None
        cost = COST_CLOSER if name in CLOSERS else COST_MARK if name in MARKS else COST_OTHER
        return Insertion(terminal, name.encode(), cost)

    def _reads(self, state: int, terminal: int, text: bytes) -> bool:
        """Whether the lexer takes a text for a terminal in a state; a line's end, only if not all else is that too."""
        is_all = text == b"\n" and self._table.token(state, b"}") == terminal
        return self._table.token(state, text) == terminal and not is_all

    @property
    def known(self) -> Iterable[Insertion]:
        """All of them."""
        return self._known.values()

    def longer(self, half: bytes) -> Iterator[tuple[int, bytes]]:
        """The keywords and marks that a text is the beginning of, as terminals and as text."""
        for one in self._by_begin.get(half[:1], ()):
            if len(one.text) > len(half) and one.text.startswith(half):
                yield one.terminal, one.text

    @cached_property
    def spellings(self) -> dict[bytes, list[int]]:
        """The words and marks of the language by their text: some are one terminal here and another there."""
        found = defaultdict(list)
        for terminal in self._table.terminals:
            if not self._table.grammar.node_kind_is_named(terminal):
                found[(self._table.grammar.node_kind_for_id(terminal) or "").encode()].append(terminal)
        return found

    def all_at(self, state: int) -> list[Insertion]:
        """All that may be written in a state but operators on values; what the grammar forces is nearly free."""
        found = self._all_at.get(state)
        if found is None:
            known = (self._known[symbol] for symbol in self._table.terminals_in(state) if symbol in self._known)
            found = [one for one in known if not OPERATOR.fullmatch(one.text)]
            factor = FEW_FACTOR if len({one.text for one in found}) <= FEW else 1.0
            self._all_at[state] = found = [replace(one, cost=one.cost * factor) for one in found]
        return found

    def at(self, state: int) -> list[Insertion]:
        """The insertions that a state knows, the cheapest first."""
        found = self._at.get(state)
        if found is None:
            found = [self._known[symbol] for symbol in self._table.terminals_in(state) if symbol in self._known]
            self._at[state] = found = sorted(_weighed(found), key=lambda one: one.cost)
        return found


class Pieces:
    """What is shortest between states: all of a symbol, and the rest of what a state is in the middle of.

    Both are found for a whole grammar at once, the cheapest first, as in Knuth's generalization of Dijkstra's algorithm
    (1977): a symbol is its first part and the rest behind that.
    """

    def __init__(self, table: ParseTable, insertions: Insertions, graph: Graph) -> None:
        self._table = table
        self._symbols: dict[int, Piece] = {}
        self._steps: dict[int, list[tuple[Piece, NDArray[np.int32]]]] = {}  # what leads to a state, from which others
        self._rests: dict[int, dict[tuple[int, int], Piece]] = {}  # by what it becomes with how many parts in front
        self._endings: dict[int, list[Ending]] = {}
        self._between: dict[tuple[int, int], Piece | None] = {}
        self._serial = count()
        self._waiting: list[tuple[float, int, int, tuple[bytes, ...]]] = []
        for one in insertions.known:
            self._wait(one.terminal, Piece(one.cost, (one.text,)))
        for state, reduced in graph.reduced.items():
            for symbol, parts in reduced:
                if parts:
                    self._rests.setdefault(state, {})[symbol, parts] = NO_TEXT
                else:
                    self._wait(symbol, NO_TEXT)
        self._settle(graph)

    def endings(self, state: int) -> list[Ending]:
        """The endings of a state, the cheapest first, one for each symbol that it may become."""
        if state not in self._endings:
            rests = sorted(self._rests.get(state, {}).items(), key=lambda rest: rest[1].cost)[:MOST_ENDINGS]
            self._endings[state] = [
                Ending(piece.text, ENDED * piece.cost, Action(REDUCE, *key)) for key, piece in rests
            ]
        return self._endings[state]

    def between(self, state: int, following: int) -> Piece | None:
        """The shortest text of a symbol that leads from a state to the ``following`` one on a stack."""
        key = state, following
        if key not in self._between:
            known = (self._symbols.get(symbol) for symbol in self._table.between(state, following))
            self._between[key] = min((piece for piece in known if piece), default=None)
        return self._between[key]

    @property
    def states(self) -> Iterable[int]:
        """All states that something leads to."""
        return self._steps

    @cached_property
    def _flat(self) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
        """All steps: the states they begin in, costs, and where in these the steps to a state begin; those states."""
        begins, costs, bounds, place = [], [], [], 0
        for steps in self._steps.values():
            bounds.append(place)
            for piece, before in steps:
                begins.append(before)
                costs.append(np.full(len(before), piece.cost))
                place += len(before)
        return np.concatenate(begins), np.concatenate(costs), np.array(bounds), np.array(list(self._steps))

    def reach(self, known: Mapping[int, float]) -> NDArray[np.float64]:
        """What it costs at least to come to each state by writing, given what it costs for some."""
        begins, costs, bounds, states = self._flat
        found = np.full(max(int(states.max()), int(begins.max()), *known) + 1, np.inf)
        for state, cost in known.items():
            found[state] = cost
        while True:
            least = np.minimum(found[states], np.minimum.reduceat(found[begins] + costs, bounds))
            if (least == found[states]).all():
                return found
            found[states] = least

    def before(self, state: int, costs: NDArray[np.float64], most: int) -> Iterator[tuple[int, Piece]]:
        """The states that lead to one, those that cost least first, and the text in between."""
        for piece, before in self._steps.get(state, ()):
            order = np.argsort(costs[before], kind="stable")[:most]
            yield from ((int(before[place]), piece) for place in order)

    def _settle(self, graph: Graph) -> None:
        while self._waiting:
            cost, _, symbol, text = heapq.heappop(self._waiting)
            if symbol in self._symbols:
                continue
            step = self._symbols[symbol] = Piece(cost, text)
            for state in graph.behind.get(symbol, ()):
                before = graph.before[state][symbol]
                self._steps.setdefault(state, []).append((step, before))
                for key, rest in tuple(self._rests.get(state, {}).items()):
                    if key[1] > 1 or key[0] not in self._symbols:
                        self._take_back(step, rest, before, key, graph)

    def _take_back(
        self, step: Piece, rest: Piece, states: NDArray[np.int32], key: tuple[int, int], graph: Graph
    ) -> None:
        """Keeps a step and the rest behind it as the rest in the states before, or as a whole symbol."""
        symbol, parts = key
        cost = step.cost + rest.cost
        if parts == 1:
            if symbol not in self._symbols and graph.is_read(symbol, states):
                self._wait(symbol, Piece(cost, step.text + rest.text))
            return
        piece, key = Piece(cost, step.text + rest.text), (symbol, parts - 1)
        for state in states.tolist():
            rests = self._rests.setdefault(state, {})
            if key not in rests or cost < rests[key].cost:
                rests[key] = piece
                for earlier, before in self._steps.get(state, ()):
                    self._take_back(earlier, piece, before, key, graph)

    def _wait(self, symbol: int, piece: Piece) -> None:
        if symbol not in self._symbols:
            heapq.heappush(self._waiting, (piece.cost, next(self._serial), symbol, piece.text))


def _weighed(choices: Sequence[Insertion]) -> list[Insertion]:
    """The choices of a state that are worth a try, at what they cost there.

    What the grammar forces is nearly free. Elsewhere an operator adds to an expression that was whole, and so does a
    word where a name would do; where none would, a word may be what the statement lacks.
    """
    texts = {one.text for one in choices}
    if len(texts) <= FEW:
        return [replace(one, cost=one.cost * FEW_FACTORS[len(texts)]) for one in choices]
    named = any(one.cost == COST_NAME and WORD.match(one.text) for one in choices)
    words = [] if named else [replace(one, cost=COST_WORD) for one in choices if WORD.match(one.text)]
    return [one for one in choices if one.cost < COST_OTHER] + words


@cache
def pieces_of(language: Language, table: ParseTable) -> tuple[Insertions, Pieces]:
    """The insertions and pieces of a language, which grow as they are asked for."""
    graph = Graph(table)
    insertions = Insertions(table, language.lexicon.operand, graph)
    return insertions, Pieces(table, insertions, graph)
