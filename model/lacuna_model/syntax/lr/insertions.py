"""What may be written in a state of a grammar, and the shortest texts between states.

A terminal is chosen by what it costs, and that by how much it adds: names and closers are cheap, openers and marks
dearer, operators and other words only where little else may stand.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from lacuna_model.syntax.lr.grammar_tables import Action
from lacuna_model.syntax.lr.parse_table import ParseTable

MOST_INSERTED = 14
WORD = re.compile(rb"[\w$\x80-\xff]")
COST_NAME = COST_CLOSER = 1.0
COST_NEWLINE = 1.2
COST_MARK = COST_WORD = 2.0
COST_OTHER = 3.0
FEW = 3
FEW_FACTORS = (1.0, 0.1, 0.4, 0.4)  # by the number of choices


@dataclass(frozen=True, slots=True)
class Insertion:
    """A terminal that may be written, as text, and what that costs."""

    terminal: int
    text: bytes
    cost: float


class Ending(NamedTuple):
    """Terminals to write, what they cost, and the reduction behind them, of states below the one they begin in."""

    text: tuple[bytes, ...]
    cost: float
    reduction: Action


class Piece(NamedTuple):
    """Terminals as texts, and what they cost."""

    cost: float
    text: tuple[bytes, ...]


class Insertions:
    """What may be written in each state of a grammar, given all that may be."""

    def __init__(self, table: ParseTable, known: Iterable[Insertion]) -> None:
        self._table = table
        self._known = {one.terminal: one for one in known}
        self._at: dict[int, list[Insertion]] = {}
        self._by_begin: dict[bytes, list[Insertion]] = {}
        for one in self._known.values():
            if len(one.text) > 1 and not one.text.isspace():
                self._by_begin.setdefault(one.text[:1], []).append(one)

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

    def line_ends(self, state: int) -> list[int]:
        """The terminals of a state that a line's end stands for."""
        known = (self._known.get(symbol) for symbol in self._table.terminals_in(state))
        return [one.terminal for one in known if one is not None and one.text == b"\n"]

    def at(self, state: int) -> list[Insertion]:
        """The insertions that a state knows, the cheapest first."""
        found = self._at.get(state)
        if found is None:
            found = [self._known[symbol] for symbol in self._table.terminals_in(state) if symbol in self._known]
            self._at[state] = found = sorted(_weighed(found), key=lambda one: one.cost)
        return found


class Pieces:
    """What is shortest between states: all of a symbol, and the rest of what a state is in the middle of."""

    def __init__(
        self, table: ParseTable, symbols: Mapping[int, Piece], find_endings: Callable[[int], list[Ending]]
    ) -> None:
        self._table = table
        self.symbols = symbols
        self._find_endings = find_endings
        self._endings: dict[int, list[Ending]] = {}
        self._between: dict[tuple[int, int], Piece | None] = {}

    def endings(self, state: int) -> list[Ending]:
        """The endings of a state, the cheapest first, one for each symbol that it may become."""
        if state not in self._endings:
            self._endings[state] = self._find_endings(state)
        return self._endings[state]

    def between(self, state: int, following: int) -> Piece | None:
        """The shortest text of a symbol that leads from a state to the ``following`` one on a stack."""
        key = state, following
        if key not in self._between:
            known = (self.symbols.get(symbol) for symbol in self._table.between(state, following))
            self._between[key] = min((piece for piece in known if piece), default=None)
        return self._between[key]


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
