"""Reads the terminals of a suffix with an LR stack of which only the upper part is known.

A reading ends where a reduction needs more of the stack than is known: substring parsing (Rekers and Koorn, 1991). What
it needs is a ``Demand`` on the states below.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from lacuna_model.syntax.lr.grammar_tables import ACCEPT, REDUCE, SHIFT
from lacuna_model.syntax.lr.parse_table import MOST_HIDDEN, ParseTable, Stack, Terminal

MOST_KEPT = 256  # terminals that suffixes begin with
MOST_READ = 12000  # steps of one reading
ENDING = (b"}", b"")  # a statement may end before it without a line end


class Place(NamedTuple):
    """A position in the suffix: before terminal ``number``, maybe with the ``symbol`` to read there chosen already.

    ``hidden`` counts the hidden terminals that were read there.
    """

    number: int
    symbol: int | None = None
    hidden: int = 0


class Demand(NamedTuple):
    """A reduction to ``symbol`` that pops ``below`` states; the suffix is read on from ``place``."""

    below: int
    symbol: int
    place: Place


BEGIN = Demand(0, 0, Place(0))  # nothing is reduced: the suffix is read from its beginning


class SuffixReader:
    """Reads one suffix; results are kept.

    ``line_ends`` are terminals that are written as a line end: before a terminal ``on_new_line`` they are read where
    the parser can read them.
    """

    def __init__(self, table: ParseTable, terminals: Sequence[Terminal], line_ends: frozenset[int]) -> None:
        self._table, self._terminals, self._line_ends = table, terminals, line_ends
        self._known: dict[tuple[int, Place], tuple[Demand | None, ...]] = {}
        self._met: dict[tuple[Stack, int, Place], bool] = {}
        self._chosen: dict[tuple[int, int, int], list[int]] = {}

    @property
    def firsts(self) -> Sequence[int]:
        """The states in which the first terminal, or the line end before it, is read and not only a reduction made."""
        return _firsts(self._table, self._terminals[0], self._line_ends) if self._terminals else ()

    def demands(self, state: int, demand: Demand) -> tuple[Demand | None, ...]:
        """Return what is needed to read on after a reduction that ends in ``state``; None where all is read."""
        above = state if demand is BEGIN else self._table.goes(state, demand.symbol)
        if not above:
            return ()
        key = above, demand.place
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(dict.fromkeys(self._read((above,), demand.place)))
        if demand is BEGIN:  # the assumed state is itself part of what was read
            return tuple(one and one._replace(below=one.below + 1) for one in found)
        return found

    def meets(self, stack: Stack, demand: Demand) -> bool:
        """Whether the whole suffix is read after a stack that is known to its bottom."""
        if demand is not BEGIN:
            base = stack[: len(stack) - demand.below]
            above = self._table.goes(base[-1], demand.symbol) if base else None
            if not above:
                return False
            stack = base
        key = stack, demand.symbol, demand.place
        if key not in self._met:
            whole = stack if demand is BEGIN else (*stack, self._table.goes(stack[-1], demand.symbol) or 0)
            self._met[key] = None in self._read(whole, demand.place)
        return self._met[key]

    def _read(self, stack: Stack, place: Place) -> Iterator[Demand | None]:
        """Read on until more of the stack must be known; yield None where the whole suffix is read."""
        waiting, seen, end = [(stack, place)], set[tuple[Stack, Place]](), len(self._terminals)
        actions_of = self._table.actions
        while waiting and len(seen) < MOST_READ:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            stack, place = one
            if place.number == end:
                yield None
                continue
            symbols = (place.symbol,) if place.symbol is not None else self._symbols(stack[-1], place)
            for symbol in symbols:
                here = Place(place.number, symbol, place.hidden)
                for action in actions_of(stack[-1], symbol):
                    if action.kind == SHIFT:
                        waiting.append((stack if action.extra else (*stack, action.to), self._behind(here)))
                    elif action.kind == ACCEPT:
                        yield None
                    elif action.kind == REDUCE and action.pops >= len(stack):
                        yield Demand(action.pops - len(stack), action.to, here)
                    elif action.kind == REDUCE and (reduced := self._table.reduce(stack, action)):
                        waiting.append((reduced, here))

    def _symbols(self, state: int, place: Place) -> list[int]:
        key = state, place.number, place.hidden
        found = self._chosen.get(key)
        if found is None:
            found = self._chosen[key] = _choose(
                self._table, state, self._terminals[place.number], self._line_ends, place.hidden
            )
        return found

    def _behind(self, place: Place) -> Place:
        """The place after the symbol that is read there."""
        symbol = place.symbol
        hidden = symbol in self._table.hidden or symbol in self._line_ends
        if hidden and not any(symbol in choice for choice in self._terminals[place.number].choices):
            return Place(place.number, None, place.hidden + 1)
        return Place(place.number + 1)


def _choose(table: ParseTable, state: int, terminal: Terminal, line_ends: frozenset[int], hidden: int) -> list[int]:
    """The symbols that may be read in a state at a terminal: its own, or one more hidden one before it."""
    ends = []
    if terminal.on_new_line and not hidden:
        ends = [one for one in line_ends if table.actions(state, one)]
        if ends and terminal.word not in ENDING:
            return ends
    known = ([one for one in choice if table.actions(state, one)] for choice in terminal.choices)
    found = next(filter(None, known), [])
    if terminal.unsure and not found and (lexed := table.token(state, terminal.word)) is not None:
        found = [lexed]
    due = table.hidden_in(state) if hidden < MOST_HIDDEN else []
    if terminal.on_new_line:
        return [*found, *due, *ends]
    return found or [one for one in due if one not in table.semicolons]


@lru_cache(maxsize=MOST_KEPT)
def _firsts(table: ParseTable, terminal: Terminal, line_ends: frozenset[int]) -> Sequence[int]:
    """The states in which a terminal is read, or the line end before it."""

    def reads(state: int) -> bool:
        symbols = _choose(table, state, terminal, line_ends, 0)
        return any(one.kind != REDUCE for symbol in symbols for one in table.actions(state, symbol))

    return [state for state in range(table.grammar.parse_state_count) if reads(state)]
