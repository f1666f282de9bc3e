"""Reads the suffix of a gap terminal by terminal, as the LR parser does, without knowing the stack before it.

Only one state is known or assumed, and nothing below it: a reading ends where a reduction needs more of the stack
(substring parsing: Rekers and Koorn, 1991). What it needs there is kept, so that a stack that is known to its bottom is
checked in as many steps as the suffix ends constructs (``Followed``).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from lacuna_model.core import work
from lacuna_model.syntax.lr.grammar_tables import ACCEPT, REDUCE, SHIFT
from lacuna_model.syntax.lr.parse_table import MAX_HIDDEN, ParseTable, Stack, Terminal

REACH = 250  # terminals of a suffix that are read at most
MAX_READ = 2000  # steps of one reading
MAX_SECONDS = 0.1  # of work, to find out whether a stack is followed
DEMAND_NS, STEP_NS = 3_000, 4_000  # of work: for a demand, and for a step of a reading
MAX_KEPT = 64  # terminals, and suffixes


class Place(NamedTuple):
    """A position in a reading: before terminal ``number``, maybe with the ``symbol`` to read there chosen already.

    ``hidden`` counts the hidden terminals that were read there.
    """

    number: int
    symbol: int | None = None
    hidden: int = 0


class Demand(NamedTuple):
    """A reduction to ``symbol`` at ``place``, from the state that is ``below`` states under the last assumed one."""

    below: int
    symbol: int
    place: Place


NOTHING_REDUCED = Demand(0, 0, Place(0))


class Suffix:
    """The terminals of a suffix, and what reading them demands of the stack; results are kept."""

    def __init__(self, table: ParseTable, terminals: Sequence[Terminal]) -> None:
        self.table, self.terminals = table, terminals
        self._known: dict[tuple[int, Place], tuple[Sequence[Demand | None], int]] = {}
        self._readable: dict[tuple[int, int, int], list[int]] = {}

    @property
    def firsts(self) -> Sequence[int]:
        """The states in which the first terminal is read, and not only a reduction is made."""
        return _states_reading(self.table, self.terminals[0])

    def read(self, state: int, place: Place) -> tuple[Sequence[Demand | None], int]:
        """Read on from a place until more of the stack than its last ``state`` must be known.

        Returns what is needed to read on, None as an item where all is read, and the number of steps of the reading.
        """
        if (state, place) not in self._known:
            self._known[state, place] = self._read((state,), place)
        return self._known[state, place]

    def follows_at_once(self, stack: Stack) -> bool:
        """Whether the first terminal can be read after a stack without a hidden one before it."""
        choices = self.terminals[0].choices if self.terminals and self.terminals[0].word else ()
        return not choices or any(self.table.shift(stack, symbol) for choice in choices for symbol in choice)

    def _read(self, stack: Stack, place: Place) -> tuple[Sequence[Demand | None], int]:
        waiting = [(stack, place)]
        seen: set[tuple[Stack, Place]] = set()
        found: dict[Demand | None, None] = {}
        while waiting and len(seen) < MAX_READ:
            stack, place = waiting.pop()
            if (stack, place) in seen:
                continue
            seen.add((stack, place))
            if place.number == len(self.terminals):
                found[None] = None
                continue
            for symbol in [place.symbol] if place.symbol is not None else self._symbols(stack[-1], place):
                here = Place(place.number, symbol, place.hidden)
                for action in self.table.actions(stack[-1], symbol):
                    if action.kind == REDUCE and action.pops >= len(stack):
                        found[Demand(action.pops - len(stack), action.to, here)] = None
                    elif action.kind == REDUCE and (reduced := self.table.reduce(stack, action)):
                        waiting.append((reduced, here))
                    elif action.kind == ACCEPT:
                        found[None] = None
                    elif action.kind == SHIFT:
                        waiting.append((stack if action.extra else (*stack, action.to), self._behind_of(here)))
        return list(found), len(seen)

    def _symbols(self, state: int, place: Place) -> list[int]:
        key = state, place.number, place.hidden
        if key not in self._readable:
            self._readable[key] = _symbols(self.table, state, self.terminals[place.number], hidden=place.hidden)
        return self._readable[key]

    def _behind_of(self, place: Place) -> Place:
        """The place after the symbol that is read."""
        choices = self.terminals[place.number].choices
        if place.symbol in self.table.hidden and not any(place.symbol in choice for choice in choices):
            return Place(place.number, None, place.hidden + 1)
        return Place(place.number + 1)


class Followed:
    """Finds out in one search which stacks a suffix follows.

    What it finds of a stack holds for all with the same bottom.
    """

    def __init__(self, suffix: Suffix) -> None:
        self._table, self._suffix = suffix.table, suffix
        self._read = set[tuple[int, Place]]()  # a reading counts as work once, also where an earlier search has made it
        self._bottoms: dict[tuple[int, int], int] = {}  # numbers of bottoms, by that of the bottom below and a state
        self._vain: set[tuple[int, Demand]] = set()  # from where the suffix cannot be read to its end

    def has(self, stack: Stack, demand: Demand = NOTHING_REDUCED) -> bool:
        """Whether the whole suffix can be read after a stack that is known to its bottom; False if that takes long."""
        bottoms, until = self._numbered(stack), work.mark(MAX_SECONDS)
        waiting = [(len(stack) - demand.below, demand)]
        seen = set[tuple[int, Demand]]()
        while waiting:
            if work.reached(until):
                return False
            height, demand = waiting.pop()
            if height <= 0:
                continue
            place = bottoms[height - 1], demand
            if place in seen or place in self._vain:
                continue
            seen.add(place)
            for further in self.demands(stack[height - 1], demand):
                if further is None:
                    return True
                waiting.append((height - further.below, further))
        self._vain |= seen
        return False

    def demands(self, state: int, demand: Demand) -> Sequence[Demand | None]:
        """Return what is needed to read on after a reduction in a state; None as an item where all is read."""
        above = state if demand is NOTHING_REDUCED else self._table.goes(state, demand.symbol)
        if above is None:
            return ()
        reading = above, demand.place
        found, num_steps = self._suffix.read(*reading)
        work.spend(DEMAND_NS if reading in self._read else DEMAND_NS + num_steps * STEP_NS)
        self._read.add(reading)
        if demand is NOTHING_REDUCED:  # the assumed state is itself on the stack that was read
            return [one and one._replace(below=one.below + 1) for one in found]
        return found

    def _numbered(self, stack: Stack) -> list[int]:
        """The numbers of the bottoms of a stack, up to each of its states."""
        number, found = 0, []
        for state in stack:
            number = self._bottoms.setdefault((number, state), len(self._bottoms) + 1)
            found.append(number)
        return found


def _symbols(table: ParseTable, state: int, terminal: Terminal, *, hidden: int) -> list[int]:
    """The symbols that may be read in a state at a terminal: its own, or one more hidden one before it."""
    known = ([one for one in choice if table.actions(state, one)] for choice in terminal.choices)
    found = next(filter(None, known), [])
    if terminal.unsure and not found and (lexed := table.token(state, terminal.word)) is not None:
        found = [lexed]
    due = table.hidden_in(state) if hidden < MAX_HIDDEN else []
    if terminal.on_new_line:
        return [*found, *due]
    return found or [one for one in due if one not in table.semicolons]


@lru_cache(maxsize=MAX_KEPT)
def _states_reading(table: ParseTable, terminal: Terminal) -> Sequence[int]:
    """The states in which a terminal is read."""

    def reads(state: int) -> bool:
        does = (table.actions(state, symbol) for symbol in _symbols(table, state, terminal, hidden=0))
        return any(one.kind != REDUCE for actions in does for one in actions)

    return [state for state in range(table.grammar.parse_state_count) if reads(state)]


@lru_cache(maxsize=MAX_KEPT)
def suffix_of(table: ParseTable, terminals: tuple[Terminal, ...]) -> Suffix:
    """Return the reader of a suffix, kept since search after search reads the same one."""
    return Suffix(table, terminals)
