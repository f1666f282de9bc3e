"""Reads the prefix and the suffix of a gap terminal by terminal, as the LR parser does.

For the prefix, the stacks are known from the start of the text. For the suffix, only one state is known or assumed, and
nothing below it: such a reading ends where a reduction needs more of the stack (substring parsing: Rekers and Koorn,
1991).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from lacuna_model.syntax.completion.far_prefix import FarPrefix
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.lr.grammar_tables import ACCEPT, REDUCE, SHIFT
from lacuna_model.syntax.lr.parse_table import MOST_HIDDEN, START, ParseTable, Stack, Terminal

MOST_READ = 2000  # steps of one reading
# States on the stacks of one reading, or of a whole search; reading them takes about half a second. Stacks are as deep
# as a file is nested; files that people write need at most a tenth of this.
MOST_STATES = 2_000_000
MOST_KEPT = 64  # terminals, and suffixes


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


class PrefixReader:
    """Finds the stacks after texts that begin alike; terminals shared with the previous text are not read again."""

    def __init__(self, table: ParseTable, clock: Clock | None = None) -> None:
        self.table = table
        self.clock = clock or Clock()
        self.front = FarPrefix(table, self.clock)
        self._before = [START]
        self._read: list[tuple[Terminal, list[Stack]]] = []

    def stacks(self, terminals: Iterable[Terminal], before: list[Stack] | None = None) -> list[Stack]:
        """Return the stacks after some terminals, by default from the start of a text; empty if time is up."""
        stacks, number = before or [START], 0
        if stacks != self._before:
            self._before, self._read = stacks, []
        for number, terminal in enumerate(terminals, start=1):
            if self._read[number - 1 : number] and self._read[number - 1][0] == terminal:
                stacks = self._read[number - 1][1]
            elif self.clock.over:
                return []  # a later search continues from here
            else:
                del self._read[number - 1 :]
                stacks = self.table.read_any(stacks, terminal)
                self._read.append((terminal, stacks))
        del self._read[number:]
        return stacks


class SuffixReader:
    """Reads the suffix of a gap from states below which nothing is known; results are kept."""

    def __init__(self, table: ParseTable, terminals: Sequence[Terminal]) -> None:
        self._table, self._terminals = table, terminals
        self._known: dict[tuple[int, Place], list[Demand | None]] = {}
        self.states_read = 0  # on the stacks of all readings

    @property
    def firsts(self) -> Sequence[int]:
        """The states in which the first terminal is read, and not only a reduction is made."""
        return _states_reading(self._table, self._terminals[0])

    def demands(self, state: int, demand: Demand) -> list[Demand | None]:
        """Return what is needed to read on after a reduction in a state; None as an item where all is read."""
        above = state if demand is NOTHING_REDUCED else self._table.goes(state, demand.symbol)
        if above is None:
            return []
        found = self._known.get((above, demand.place))
        if found is None:
            found = self._known[above, demand.place] = list(dict.fromkeys(self._read((above,), demand.place)))
        if demand is NOTHING_REDUCED:  # the assumed state is itself on the stack that was read
            return [one and one._replace(below=one.below + 1) for one in found]
        return found

    def meets(self, stack: Stack, demand: Demand) -> bool:
        """Whether the whole suffix is read after a stack that is known to its bottom."""
        if demand is not NOTHING_REDUCED:
            base = stack[: len(stack) - demand.below]
            above = self._table.goes(base[-1], demand.symbol) if base else None
            if not above:
                return False
            stack = (*base, above)
        return None in self._read(stack, demand.place)

    def _read(self, stack: Stack, place: Place) -> Iterator[Demand | None]:
        """Read on until more of the stack must be known; yields None where the whole suffix is read."""
        waiting = [(stack, place)]
        seen: set[tuple[Stack, Place]] = set()
        most = self.states_read + MOST_STATES
        while waiting and len(seen) < MOST_READ and self.states_read < most:
            stack, place = waiting.pop()
            if (stack, place) in seen:
                continue
            seen.add((stack, place))
            self.states_read += len(stack)
            if place.number == len(self._terminals):
                yield None
                continue
            for symbol in [place.symbol] if place.symbol is not None else self._symbols(stack[-1], place):
                here = place._replace(symbol=symbol)
                for action in self._table.actions(stack[-1], symbol):
                    if action.kind == REDUCE and action.pops >= len(stack):
                        yield Demand(action.pops - len(stack), action.to, here)
                    elif action.kind == REDUCE and (reduced := self._table.reduce(stack, action)):
                        waiting.append((reduced, here))
                    elif action.kind == ACCEPT:
                        yield None
                    elif action.kind == SHIFT:
                        waiting.append((stack if action.extra else (*stack, action.to), self._behind_of(here)))

    def _symbols(self, state: int, place: Place) -> list[int]:
        return _symbols(self._table, state, self._terminals[place.number], hidden=place.hidden)

    def _behind_of(self, place: Place) -> Place:
        """The place after the symbol that is read."""
        choices = self._terminals[place.number].choices
        if place.symbol in self._table.hidden and not any(place.symbol in choice for choice in choices):
            return Place(place.number, None, place.hidden + 1)
        return Place(place.number + 1)


def _symbols(table: ParseTable, state: int, terminal: Terminal, *, hidden: int) -> list[int]:
    """The symbols that may be read in a state at a terminal: its own, or one more hidden one before it."""
    known = ([one for one in choice if table.actions(state, one)] for choice in terminal.choices)
    found = next(filter(None, known), [])
    if terminal.unsure and not found and (lexed := table.token(state, terminal.word)) is not None:
        found = [lexed]
    due = table.hidden_in(state) if hidden < MOST_HIDDEN else []
    if terminal.on_new_line:
        return [*found, *due]
    return found or [one for one in due if one not in table.semicolons]


@lru_cache(maxsize=MOST_KEPT)
def _states_reading(table: ParseTable, terminal: Terminal) -> Sequence[int]:
    """The states in which a terminal is read."""

    def reads(state: int) -> bool:
        does = (table.actions(state, symbol) for symbol in _symbols(table, state, terminal, hidden=0))
        return any(one.kind != REDUCE for actions in does for one in actions)

    return [state for state in range(table.grammar.parse_state_count) if reads(state)]


@lru_cache(maxsize=MOST_KEPT)
def suffix_reader(table: ParseTable, terminals: tuple[Terminal, ...]) -> SuffixReader:
    """Return the reader of a suffix, kept since search after search reads the same one."""
    return SuffixReader(table, terminals)
