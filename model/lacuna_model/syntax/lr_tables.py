"""A grammar's LR tables, read from the memory of its wheel.

tree-sitter's bindings report the terminals of a state and the target of a shift, but no reductions. The tables hold
these. Their layout is that of ``TSLanguage`` in ``tree_sitter/parser.h``, unchanged from ABI 13 to 15.
"""

import ctypes
import importlib
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from lacuna_model.languages.language import Language

Row = TypeVar("Row")
OLDEST_ABI, NEWEST_ABI = 13, 15
FIRST_STATE = 1
ENTRY = 8  # bytes per action
LONGEST_ROW = 1 << 20  # numbers; values after the end of a table are mapped but never read
SHIFT, REDUCE, ACCEPT, NONE = 0, 1, 2, -1


class Action(NamedTuple):
    """An action of a state on a terminal: shift to the state ``to``, or reduce ``pops`` symbols to the symbol ``to``.

    An ``extra`` shift reads something that is allowed anywhere and leaves the stack as it is.
    """

    kind: int
    to: int
    pops: int = 0
    extra: bool = False


class _Grown(dict[int, Row], Generic[Row]):
    """A table whose rows are computed on first access."""

    def __init__(self, make: Callable[[int], Row]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: int) -> Row:
        row = self[key] = self._make(key)
        return row


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


class GrammarTables:
    """The actions and gotos of each state of a grammar's parser."""

    def __init__(self, language: Language) -> None:
        self.grammar = language.grammar()
        self._tables = _Tables.from_address(_address(language))
        self.terminals = range(1, self._tables.terminals)
        # The first states have full rows, one value per symbol. The others have groups of symbols with the same value.
        self._large = np.ctypeslib.as_array(self._tables.large, (self._tables.large_states, self._tables.symbols))
        small_states = self._tables.states - self._tables.large_states
        self._small_places = np.ctypeslib.as_array(self._tables.small_places, (small_states,))
        self._small = np.ctypeslib.as_array(self._tables.small, (int(self._small_places.max(initial=0)) + LONGEST_ROW,))
        # By state: its actions by terminal, and its next state by nonterminal. By place: the actions listed there.
        self._does = _Grown(self._read_actions)
        self._goes = _Grown(self._read_gotos)
        self._actions = _Grown(self._read_actions_at)

    def _read_actions(self, state: int) -> dict[int, tuple[Action, ...]]:
        last, at = self.terminals[-1], self._actions
        return {symbol: does for symbol, place in self._entries(state) if symbol <= last and (does := at[place])}

    def _read_gotos(self, state: int) -> dict[int, int]:
        last = self.terminals[-1]
        return {symbol: to for symbol, to in self._entries(state) if symbol > last}

    def _entries(self, state: int) -> list[tuple[int, int]]:
        if state < len(self._large):
            row = self._large[state]
            symbols = np.flatnonzero(row)
            return list(zip(symbols.tolist(), row[symbols].tolist(), strict=True))
        place = int(self._small_places[state - len(self._large)])
        groups, place = int(self._small[place]), place + 1
        entries: list[tuple[int, int]] = []
        for _ in range(groups):
            value, count = self._small[place : place + 2].tolist()
            entries += [(symbol, value) for symbol in self._small[place + 2 : place + 2 + count].tolist()]
            place += 2 + count
        return entries

    def _read_actions_at(self, place: int) -> tuple[Action, ...]:
        entries = self._tables.actions
        following = ENTRY * (place + 1)
        read = [
            _action(entries[at : at + ENTRY])
            for at in range(following, following + ENTRY * entries[following - ENTRY], ENTRY)
        ]
        return tuple(action for action in read if action is not None)


def _action(entry: Sequence[int]) -> Action | None:
    kind, value = entry[0], entry[2] | entry[3] << 8
    if kind == SHIFT:  # a repetition is reduced first and not shifted
        return None if entry[5] else Action(SHIFT, value, extra=bool(entry[4]))
    return Action(kind, value, entry[1]) if kind in (REDUCE, ACCEPT) else None


def _address(language: Language) -> int:
    grammar = getattr(importlib.import_module(language.module), language.symbol)()
    if isinstance(grammar, int):
        return grammar
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(pointer(grammar, b"tree_sitter.Language"))
