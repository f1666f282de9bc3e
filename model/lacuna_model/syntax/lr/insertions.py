"""The terminals that may be written in a state of a grammar, and the shortest texts between states.

Terminals are chosen by cost, which reflects how much they add: names and closers are cheap, openers and marks cost
more. Operators and other words are tried only where there are few other choices.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from lacuna_model.syntax.lr.best_first import Way
from lacuna_model.syntax.lr.grammar_tables import Action
from lacuna_model.syntax.lr.parse_table import ParseTable, Stack

MAX_INSERTED = 14
WORD = re.compile(rb"[\w$\x80-\xff]")
COST_NAME = COST_CLOSER = 1.0
COST_NEWLINE = 1.2
COST_MARK = COST_WORD = 2.0
COST_OTHER = 3.0
DIRECTIVE = re.compile(rb"#[a-z]")
FEW = 3
FEW_FACTORS = (1.0, 0.1, 0.4, 0.4)  # by the number of different texts


@dataclass(frozen=True, slots=True)
class Insertion:
    """A terminal that may be written, its text, and its cost."""

    terminal: int
    text: bytes
    cost: float


class Ending(NamedTuple):
    """Terminals to write in a state, their cost, and the reduction that follows them.

    The reduction pops only the parts that were on the stack before these terminals.
    """

    text: tuple[bytes, ...]
    cost: float
    reduction: Action


class Piece(NamedTuple):
    """Terminals as texts, and their cost."""

    cost: float
    text: tuple[bytes, ...]


class Insertions:
    """The terminals that may be written in each state of a grammar, out of the ``known`` insertions."""

    def __init__(self, table: ParseTable, known: Iterable[Insertion]) -> None:
        self._table = table
        self._known = {one.terminal: one for one in known}
        self._at: dict[int, list[Insertion]] = {}
        self._by_begin: dict[bytes, list[Insertion]] = {}
        for one in self._known.values():
            if len(one.text) > 1 and not one.text.isspace():
                self._by_begin.setdefault(one.text[:1], []).append(one)

    def longer(self, half: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the keywords and marks that begin with ``half`` and are longer, as terminal and text."""
        for one in self._by_begin.get(half[:1], ()):
            if len(one.text) > len(half) and one.text.startswith(half):
                yield one.terminal, one.text

    @cached_property
    def spellings(self) -> dict[bytes, list[int]]:
        """The keywords and marks by text; one text may be several terminals."""
        found = defaultdict(list)
        for terminal in self._table.terminals:
            if not self._table.grammar.node_kind_is_named(terminal):
                found[(self._table.grammar.node_kind_for_id(terminal) or "").encode()].append(terminal)
        return found

    def line_ends(self, state: int) -> list[int]:
        """Return the terminals of a state that are written as a line end."""
        known = (self._known.get(symbol) for symbol in self._table.terminals_in(state))
        return [one.terminal for one in known if one is not None and one.text == b"\n"]

    def at(self, state: int) -> list[Insertion]:
        """Return the insertions that are allowed in a state, cheapest first."""
        found = self._at.get(state)
        if found is None:
            found = [self._known[symbol] for symbol in self._table.terminals_in(state) if symbol in self._known]
            self._at[state] = found = sorted(_weighed(found), key=lambda one: one.cost)
        return found

    def written(self, way: Way[Stack]) -> Iterator[Way[Stack]]:
        """Yield the ways that one more terminal leads to; the reductions before it are endings without text."""
        for one in self.at(way.state[-1]):
            for state in self._table.shifted(way.state[-1], one.terminal):
                yield Way((*way.state, state), (*way.text, one.text), way.cost + one.cost)


class Pieces:
    """The shortest texts between states: of whole symbols, and of the rest of a state's unfinished symbol."""

    def __init__(
        self, table: ParseTable, symbols: Mapping[int, Piece], find_endings: Callable[[int], list[Ending]]
    ) -> None:
        self._table = table
        self.symbols = symbols
        self._find_endings = find_endings
        self._endings: dict[int, list[Ending]] = {}
        self._between: dict[tuple[int, int], Piece | None] = {}

    def endings(self, state: int) -> list[Ending]:
        """Return the endings of a state, cheapest first, one for each symbol that it may reduce to."""
        if state not in self._endings:
            self._endings[state] = self._find_endings(state)
        return self._endings[state]

    def ended(self, way: Way[Stack]) -> Iterator[Way[Stack]]:
        """Yield the ways that end the innermost construct of a stack, in one of the shortest known ways each."""
        for ending in self.endings(way.state[-1]):
            if reduced := self._table.reduce(way.state, ending.reduction):
                yield Way(reduced, way.text + ending.text, way.cost + ending.cost)

    def between(self, state: int, following: int) -> Piece | None:
        """Return the shortest text of a symbol that leads from ``state`` to ``following`` on a stack; None for none."""
        key = state, following
        if key not in self._between:
            known = (self.symbols.get(symbol) for symbol in self._table.between(state, following))
            self._between[key] = min((piece for piece in known if piece), default=None)
        return self._between[key]


def _weighed(choices: Sequence[Insertion]) -> list[Insertion]:
    """Return the choices of a state that are worth a try, with their cost there.

    Terminals that the grammar forces are nearly free. Elsewhere an operator extends an expression that was complete,
    and so does a word where a name is possible. Where no name is possible, the statement may lack a word.
    """
    texts = {one.text for one in choices}
    if len(texts) <= FEW:
        return [replace(one, cost=one.cost * FEW_FACTORS[len(texts)]) for one in choices]
    named = any(one.cost == COST_NAME and WORD.match(one.text) for one in choices)
    words = [] if named else [replace(one, cost=COST_WORD) for one in choices if WORD.match(one.text)]
    return [one for one in choices if one.cost < COST_OTHER] + words


def spelled(text: bytes, written: Sequence[bytes]) -> bytes:
    """Return terminals as text: words kept apart, a blank before a block's brace, directives on lines of their own."""
    spelled = b""
    for part in written:
        before = (text + spelled)[-1:]
        apart = WORD.match(before) and WORD.match(part)
        if DIRECTIVE.match(part) and before not in b"\n":
            spelled += b"\n"
        elif apart or (part == b"{" and before not in b" \n("):
            spelled += b" "
        spelled += part
    return spelled
