"""A grammar's LR tables, read from the memory of its wheel, and parse stacks driven by them.

tree-sitter's bindings tell which terminals a state knows and where a shift leads, but not what is reduced. The tables
say that; their layout is that of ``TSLanguage`` in ``tree_sitter/parser.h``, unchanged from ABI 13 to 15.
"""

import ctypes
import importlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from tree_sitter import Node, Tree

from lacuna_model.syntax.languages import Language

# The states of a parser from its first on; an ambiguity is several of them.
Stack = tuple[int, ...]

OLDEST_ABI, NEWEST_ABI = 13, 15
START: Stack = (1,)
END = 0  # the symbol of the end of the text
MOST_STACKS = 8
MOST_HIDDEN = 4  # in a row: a line's end and the blocks that end with it
MOST_REDUCTIONS = 40
ENTRY = 8  # bytes of an action
SHIFT, REDUCE, ACCEPT = 0, 1, 2


class Action(NamedTuple):
    """What a state does at a terminal: shift to the state ``to``, or reduce ``pops`` symbols to the symbol ``to``.

    A shift of something that may stand anywhere (``extra``) leaves the stack as it is.
    """

    kind: int
    to: int
    pops: int = 0
    extra: bool = False


class _Tables(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("abi", "symbols", "aliases", "terminals", "externals", "states")),
        *((name, ctypes.c_uint32) for name in ("large_states", "productions", "fields")),
        ("longest_alias", ctypes.c_uint16),
        ("large", ctypes.POINTER(ctypes.c_uint16)),
        ("small", ctypes.POINTER(ctypes.c_uint16)),
        ("small_places", ctypes.POINTER(ctypes.c_uint32)),
        ("actions", ctypes.POINTER(ctypes.c_uint8)),
    )


class ParseTable:
    """Moves parse stacks over terminals and over subtrees that are parsed already."""

    def __init__(self, language: Language) -> None:
        self.grammar = language.grammar()
        self._tables = _Tables.from_address(_address(language))
        self.terminals = range(1, self._tables.terminals)
        # Terminals that no tree shows, a semicolon that the end of a line stands for, say.
        self.hidden = [symbol for symbol in self.terminals if not self.grammar.node_kind_is_visible(symbol)]
        self._rows: dict[int, dict[int, int]] = {}
        self._actions: dict[int, tuple[Action, ...]] = {}
        self._hidden_known: dict[int, list[int]] = {}
        self._reductions: dict[int, tuple[Action, ...]] = {}

    def row(self, state: int) -> dict[int, int]:
        """What a state has for each symbol: the place of its actions for a terminal, else the state to go to."""
        row = self._rows.get(state)
        if row is None:
            row = self._rows[state] = dict(self._entries(state))
        return row

    def _entries(self, state: int) -> Iterator[tuple[int, int]]:
        tables = self._tables
        if state < tables.large_states:
            begin = state * tables.symbols
            yield from (
                (symbol, value) for symbol, value in enumerate(tables.large[begin : begin + tables.symbols]) if value
            )
            return
        place = tables.small_places[state - tables.large_states]
        groups, place = tables.small[place], place + 1
        for _ in range(groups):
            value, count = tables.small[place], tables.small[place + 1]
            yield from ((symbol, value) for symbol in tables.small[place + 2 : place + 2 + count])
            place += 2 + count

    def actions(self, state: int, terminal: int) -> tuple[Action, ...]:
        """What may be done in a state when a terminal comes."""
        place = self.row(state).get(terminal) if terminal <= self.terminals[-1] else None
        if place is None:
            return ()
        found = self._actions.get(place)
        if found is None:
            count = self._tables.actions[ENTRY * place]
            read = (self._read(ENTRY * (place + number)) for number in range(1, count + 1))
            found = self._actions[place] = tuple(action for action in read if action is not None)
        return found

    def _read(self, offset: int) -> Action | None:
        data = self._tables.actions[offset : offset + ENTRY]
        value = data[2] | data[3] << 8
        if data[0] == SHIFT:  # a repetition is not shifted but reduced first
            return None if data[5] else Action(SHIFT, value, extra=bool(data[4]))
        return Action(data[0], value, data[1]) if data[0] in (REDUCE, ACCEPT) else None

    def shift(self, stack: Stack, terminal: int, depth: int = 0) -> list[Stack]:
        """The stacks behind a terminal, or behind a leaf that consists of hidden ones: the text of a string, say."""
        if terminal > self.terminals[-1]:
            state = self.row(stack[-1]).get(terminal)
            return [(*stack, state)] if state else []
        found = []
        for action in self.actions(stack[-1], terminal):
            if action.kind == SHIFT:
                found.append(stack if action.extra else (*stack, action.to))
            elif action.kind == ACCEPT:
                found.append(stack)
            elif depth < MOST_REDUCTIONS and (reduced := self.reduce(stack, action)):
                found += self.shift(reduced, terminal, depth + 1)
        return found

    def shifted(self, state: int, terminal: int) -> list[int]:
        """The states that a shift of a terminal leads to."""
        actions = self.actions(state, terminal)
        return [action.to for action in actions if action.kind == SHIFT and not action.extra]

    def reductions(self, state: int) -> tuple[Action, ...]:
        """What a state reduces, whatever comes."""
        found = self._reductions.get(state)
        if found is None:
            actions = (action for symbol in self.row(state) for action in self.actions(state, symbol))
            found = tuple(dict.fromkeys(action for action in actions if action.kind == REDUCE))
            self._reductions[state] = found
        return found

    def reduce(self, stack: Stack, action: Action) -> Stack | None:
        """The stack behind a reduction; None where it cannot be made."""
        base = stack[: len(stack) - action.pops]
        state = self.row(base[-1]).get(action.to) if base else None
        return (*base, state) if state else None

    def read(self, stacks: Iterable[Stack], terminal: int, *, on_new_line: bool = False) -> list[Stack]:
        """The stacks behind a terminal, with hidden ones in front where they are due or the line is new."""
        stacks = list(stacks)
        found = _distinct(after for stack in stacks for after in self.shift(stack, terminal))
        for _ in range(MOST_HIDDEN):
            if not stacks or (found and not on_new_line):
                break
            stacks = _distinct(after for stack in stacks for after in self._hidden(stack))
            found = _distinct([*found, *(after for stack in stacks for after in self.shift(stack, terminal))])
        return found

    def _hidden(self, stack: Stack) -> Iterator[Stack]:
        """The stacks behind the hidden terminals that may come."""
        return (after for hidden in self._hidden_in(stack[-1]) for after in self.shift(stack, hidden))

    def _hidden_in(self, state: int) -> list[int]:
        found = self._hidden_known.get(state)
        if found is None:
            found = self._hidden_known[state] = [symbol for symbol in self.hidden if symbol in self.row(state)]
        return found

    def knows(self, state: int, terminal: int) -> bool:
        """Whether a terminal may come in a state, maybe behind a hidden one."""
        return terminal in self.row(state) or bool(self._hidden_in(state))

    def take(self, tree: Tree, offset: int) -> list[Stack]:
        """The stacks behind the part of a sound tree that ends at an offset: what is whole is taken as such."""
        return self._take([START], tree.root_node, offset)

    def _take(self, stacks: list[Stack], node: Node, offset: int) -> list[Stack]:
        for child in node.children:
            if child.is_extra:
                continue
            if child.start_byte >= offset and child.end_byte > offset:
                break
            whole = child.end_byte <= offset
            if not child.child_count:
                stacks = self.read(stacks, child.grammar_id) if whole else stacks
            elif not whole or not (taken := self._take_whole(stacks, child)):
                stacks = self._take(stacks, child, offset)
            else:
                stacks = taken
        return stacks

    def _take_whole(self, stacks: list[Stack], node: Node) -> list[Stack]:
        first = node
        while first.child_count and (child := first.child(0)):
            first = child
        symbols = first.grammar_id, node.grammar_id
        for _ in range(1 + MOST_HIDDEN):
            if found := _distinct(after for stack in stacks for after in self._go(stack, *symbols)):
                return found
            stacks = _distinct(after for stack in stacks for after in self._hidden(stack))
        return []

    def _go(self, stack: Stack, first: int, symbol: int, depth: int = 0) -> Iterator[Stack]:
        """The stacks behind a nonterminal that begins with the terminal ``first``.

        Where that only reduces, the nonterminal is one more of a repetition, which is reduced first.
        """
        actions = self.actions(stack[-1], first)
        begins = not actions or any(action.kind == SHIFT for action in actions)
        if begins and (state := self.row(stack[-1]).get(symbol)):
            yield (*stack, state)
        for action in actions if depth < MOST_REDUCTIONS else ():
            if action.kind == REDUCE and (reduced := self.reduce(stack, action)):
                yield from self._go(reduced, first, symbol, depth + 1)


@cache
def parse_table(language: Language) -> ParseTable | None:
    """The table of a language, read once; None where its layout is not known."""
    return ParseTable(language) if OLDEST_ABI <= language.grammar().abi_version <= NEWEST_ABI else None


def _address(language: Language) -> int:
    grammar = getattr(importlib.import_module(language.module), language.symbol)()
    if isinstance(grammar, int):
        return grammar
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(pointer(grammar, b"tree_sitter.Language"))


def _distinct(stacks: Iterable[Stack]) -> list[Stack]:
    return list(dict.fromkeys(stacks))[:MOST_STACKS]


def leaves(node: Node, begin: int) -> Iterator[Node]:
    """The leaves of a tree that begin at an offset or behind it; comments and what is missing are none."""
    for child in node.children:
        if child.end_byte <= begin or (child.is_extra and not child.is_error):
            continue
        if child.child_count:
            yield from leaves(child, begin)
        elif begin <= child.start_byte < child.end_byte:
            yield child
