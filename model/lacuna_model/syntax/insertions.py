"""What may be written in a state of a grammar, and the shortest texts between states.

A terminal is chosen by what it costs, and that by how much it adds: names and closers are cheap, openers and marks
dearer, operators and other words only where little else may stand.
"""

import heapq
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import count

from lacuna_model.syntax.languages import Language
from lacuna_model.syntax.parse_table import Action, ParseTable, Stack

MOST_VISITED = 40
MOST_ENDINGS = 4
MOST_INSERTED = 14
NAMES = re.compile(r"identifier|word|(?:\A|_)name\Z|character|regex_pattern")
# What makes a longer expression of one that may stand there as it is.
OPERATOR = re.compile(rb"[-+*/%^&~@]+=?|[=!<>]==?|&&=?|\|\|=?|<<=?|>>>?=?|\?\?=?|&\^=?|<-|\.\.[.=]?|//=?|\|=|<=>|<>")
# What the end of a line stands for: in Go's grammar that has no name of its own.
LINE_ENDS = re.compile(r"automatic_semicolon\Z|\Asource_file_token")
KEYWORD = re.compile(rb"#?[A-Za-z_]\w+")
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


class Insertions:
    """What may be written in each state of a grammar."""

    def __init__(self, table: ParseTable, operand: bytes) -> None:
        self._table = table
        self._known = {one.terminal: one for symbol in table.terminals if (one := self._written(symbol, operand))}
        self._at: dict[int, list[Insertion]] = {}
        self._all_at: dict[int, list[Insertion]] = {}

    def _written(self, terminal: int, operand: bytes) -> Insertion | None:
        grammar = self._table.grammar
        name = grammar.node_kind_for_id(terminal) or ""
        if name.isspace() or LINE_ENDS.search(name):
            return Insertion(terminal, b"\n", COST_NEWLINE)
        if not grammar.node_kind_is_visible(terminal):
            return None
        if grammar.node_kind_is_named(terminal):
            return Insertion(terminal, operand, COST_NAME) if NAMES.search(name) else None
        if name in NOT_WRITTEN or not name:
            return None
        cost = COST_CLOSER if name in CLOSERS else COST_MARK if name in MARKS else COST_OTHER
        return Insertion(terminal, name.encode(), cost)

    def longer(self, word: bytes) -> Iterator[tuple[int, bytes]]:
        """The keywords that a word is the beginning of, as terminals and as text."""
        for one in self._known.values():
            if word and len(one.text) > len(word) and one.text.startswith(word) and KEYWORD.fullmatch(one.text):
                yield one.terminal, one.text

    def shifting(self, state: int, following: int) -> Insertion | None:
        """The terminal that leads from one state to another."""
        known = (self._known[symbol] for symbol in self._table.row(state) if symbol in self._known)
        return next((one for one in known if following in self._table.shifted(state, one.terminal)), None)

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
            known = (self._known[symbol] for symbol in self._table.row(state) if symbol in self._known)
            found = [one for one in known if not OPERATOR.fullmatch(one.text)]
            factor = FEW_FACTOR if len({one.text for one in found}) <= FEW else 1.0
            self._all_at[state] = found = [replace(one, cost=one.cost * factor) for one in found]
        return found

    def at(self, state: int) -> list[Insertion]:
        """The insertions that a state knows, the cheapest first."""
        found = self._at.get(state)
        if found is None:
            found = [self._known[symbol] for symbol in self._table.row(state) if symbol in self._known]
            self._at[state] = found = sorted(_weighed(found), key=lambda one: one.cost)
        return found


class Pieces:
    """What is shortest between states: the end of what a state is in the middle of, and all of a symbol."""

    def __init__(self, table: ParseTable, insertions: Insertions) -> None:
        self._table = table
        self._insertions = insertions
        self._endings: dict[int, list[Ending]] = {}
        self._symbols: dict[tuple[int, int], tuple[bytes, ...] | None] = {}

    def endings(self, state: int) -> list[Ending]:
        """The endings of a state, the cheapest first, one for each symbol that it may become."""
        if state not in self._endings:
            ended: dict[Action, Ending] = {}
            for stack, text, cost in self._walk(state):
                for action in self._table.reductions(stack[-1]):
                    beyond = action._replace(pops=action.pops - (len(stack) - 1))
                    if beyond.pops > 0:
                        ended.setdefault(beyond, Ending(text, cost, beyond))
                if len(ended) >= MOST_ENDINGS:
                    break
            self._endings[state] = list(ended.values())
        return self._endings[state]

    def between(self, state: int, following: int) -> tuple[bytes, ...] | None:
        """The shortest text of the symbol that leads from a state to the ``following`` one on a stack."""
        key = state, following
        if key not in self._symbols:
            one = self._insertions.shifting(state, following)
            walked = (text for stack, text, _ in self._walk(state) if stack == key)
            self._symbols[key] = (one.text,) if one is not None else next(walked, None)
        return self._symbols[key]

    def _walk(self, state: int) -> Iterator[tuple[Stack, tuple[bytes, ...], float]]:
        """Stacks that begin with a state, and the text behind it that makes them, from the cheapest on."""
        serial = count()
        waiting: list[tuple[float, int, Stack, tuple[bytes, ...]]] = [(0.0, next(serial), (state,), ())]
        seen: set[Stack] = set()
        while waiting and len(seen) < MOST_VISITED:
            cost, _, stack, text = heapq.heappop(waiting)
            if stack in seen:
                continue
            seen.add(stack)
            yield stack, text, cost
            for action in self._table.reductions(stack[-1]):
                if action.pops < len(stack) and (reduced := self._table.reduce(stack, action)):
                    heapq.heappush(waiting, (cost, next(serial), reduced, text))
            for one in self._insertions.at(stack[-1]) if len(text) < MOST_INSERTED else ():
                for after in self._table.shifted(stack[-1], one.terminal):
                    entry = (cost + one.cost, next(serial), (*stack, after), (*text, one.text))
                    heapq.heappush(waiting, entry)


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
    insertions = Insertions(table, language.lexicon.operand)
    return insertions, Pieces(table, insertions)
