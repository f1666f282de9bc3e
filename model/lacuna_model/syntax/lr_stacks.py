"""LR parse stacks, driven by a grammar's tables, and texts that begin alike read as the LR parser does.

tree-sitter's bindings report the terminals of a state and the target of a shift, but no reductions. The tables hold
these, in the memory of the grammar's wheel. Their layout is that of ``TSLanguage`` in ``tree_sitter/parser.h``,
unchanged from ABI 13 to 15.
"""

import ctypes
import importlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from tree_sitter import Node

from lacuna_model.core import work
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError, edited
from lacuna_model.text.diff import num_common

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


def _action(entry: Sequence[int]) -> Action | None:
    kind, value = entry[0], entry[2] | entry[3] << 8
    if kind == SHIFT:  # a repetition is reduced first and not shifted
        return None if entry[5] else Action(SHIFT, value, extra=bool(entry[4]))
    return Action(kind, value, entry[1]) if kind in (REDUCE, ACCEPT) else None


def _address(language: Language) -> int:
    grammar = getattr(importlib.import_module(language.module), language.symbol)()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(pointer(grammar, b"tree_sitter.Language"))


# The states of a parser, from its start state on; an ambiguity is several stacks.
Stack = tuple[int, ...]


class Terminal(NamedTuple):
    """A piece of text, and the terminals that the parser may read it as.

    ``choices`` are groups of terminals; a group counts only where no earlier one can be read. A keyword, for example,
    is read as a name where the keyword is not allowed.
    """

    word: bytes
    choices: tuple[tuple[int, ...], ...]
    on_new_line: bool = False


START: Stack = (FIRST_STATE,)
MAX_STACKS = 8
MAX_HIDDEN = 4  # in a row: a line end and the blocks that end with it
MAX_REDUCTIONS = 40
NOTHING = (Action(NONE, 0),)
# Hidden terminals that stand for the end of a line. On the same line they are read before what closes a block only; but
# in Ruby anywhere, of whose many stacks not all are kept.
LINE_END = re.compile(
    r"_new_?line|\w*_automatic_semicolon|_semi|_class_member_semi|_line_ending_or_eof|"
    r"(?:source_file|document|preproc_\w+)_token\d"
)
CLOSING = (b"}", b")", b"]", b"?>")


class ParseTable:
    """Moves parse stacks over terminals and parsed subtrees, by the actions and gotos of each state of a parser."""

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
        # Terminals that no tree shows, such as a semicolon that a line end stands for.
        self.hidden = [symbol for symbol in self.terminals if not self.grammar.node_kind_is_visible(symbol)]
        ends = (symbol for symbol in self.hidden if LINE_END.fullmatch(self.grammar.node_kind_for_id(symbol) or ""))
        self._line_ends = frozenset(ends)
        self._hidden_known: dict[tuple[int, bool], list[int]] = {}
        self.spellings: dict[bytes, list[int]] = {}  # keywords and marks by text; one text may be several terminals
        for symbol in self.terminals:
            if not self.grammar.node_kind_is_named(symbol):
                self.spellings.setdefault((self.grammar.node_kind_for_id(symbol) or "").encode(), []).append(symbol)

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

    def shift(self, stack: Stack, terminal: int, depth: int = 0) -> list[Stack]:
        """Return the stacks after a terminal, with the reductions that come first; empty where it is not allowed."""
        does, goes = self._does, self._goes
        if terminal > self.terminals[-1]:
            return self._shift_whole(stack, terminal)
        found: list[Stack] = []
        while depth < MAX_REDUCTIONS:
            depth += 1
            (kind, to, pops, extra), *others = does[stack[-1]].get(terminal, NOTHING)
            for action in others:  # an ambiguity
                found += self._act(stack, terminal, action, depth)
            if kind != REDUCE:
                return [*found, stack if extra or kind == ACCEPT else (*stack, to)] if kind != NONE else found
            base = stack[: len(stack) - pops]
            state = goes[base[-1]].get(to) if base else None
            if not state:
                break
            stack = (*base, state)
        return found

    def _act(self, stack: Stack, terminal: int, action: Action, depth: int) -> list[Stack]:
        if action.kind != REDUCE:
            return [stack if action.extra or action.kind == ACCEPT else (*stack, action.to)]
        reduced = self.reduce(stack, action)
        return self.shift(reduced, terminal, depth) if reduced else []

    def _shift_whole(self, stack: Stack, symbol: int) -> list[Stack]:
        """The stacks after a symbol whose terminals no tree shows, such as the inside of a string."""
        found, waiting = list[Stack](), {stack: 0}  # each with the reductions that led to it
        for way in (ways := list(waiting)):
            actions = list(self._does[way[-1]].values())
            if state := self._goes[way[-1]].get(symbol):
                found.append((*way, state))
                actions = [several for several in actions if len(several) > 1]  # ambiguities
            known = dict.fromkeys(chain.from_iterable(actions))
            for action in known if waiting[way] < MAX_REDUCTIONS else ():
                reduced = self.reduce(way, action) if action.kind == REDUCE else None
                if reduced is not None and reduced not in waiting:
                    waiting[reduced] = waiting[way] + 1
                    ways.append(reduced)
        return found

    def reduce(self, stack: Stack, action: Action) -> Stack | None:
        """Return the stack after a reduction; None where it is not possible."""
        base = stack[: len(stack) - action.pops]
        state = self._goes[base[-1]].get(action.to) if base else None
        return (*base, state) if state else None

    def read(
        self, stacks: Collection[Stack], terminal: int, *, on_new_line: bool = False, closes: bool = True
    ) -> list[Stack]:
        """Return the stacks after a terminal, reading hidden ones first where nothing else fits or the line is new.

        The end of a line is read only where the line is new, or the terminal ``closes`` a block.
        """
        found = self._shifted_all(stacks, terminal)
        if found and not on_new_line:
            return found
        for _ in range(MAX_HIDDEN):
            if not stacks or (found and not on_new_line):
                break
            stacks = self.past_hidden(stacks, ends_line=on_new_line or closes)
            found = _distinct([*found, *self._shifted_all(stacks, terminal)])
        return found

    def read_any(self, stacks: Collection[Stack], terminal: Terminal) -> list[Stack]:
        """Return the stacks after a text that may be several terminals."""
        reads = partial(self.read, on_new_line=terminal.on_new_line, closes=terminal.word in CLOSING)
        for choice in terminal.choices:
            read = (reads(stacks, one) for one in choice)
            if found := _distinct(chain.from_iterable(read)):
                return found
        return []

    def _shifted_all(self, stacks: Collection[Stack], terminal: int) -> list[Stack]:
        if len(stacks) == 1:
            found = self.shift(next(iter(stacks)), terminal)
            return found if len(found) < 2 else _distinct(found)
        return _distinct(after for stack in stacks for after in self.shift(stack, terminal))

    def past_hidden(self, stacks: Iterable[Stack], *, ends_line: bool = True) -> list[Stack]:
        """Return the stacks after one more hidden terminal, which may be the end of a line if it ``ends_line``."""
        following = ((stack, hidden) for stack in stacks for hidden in self._hidden_in(stack[-1], ends_line=ends_line))
        return _distinct(after for stack, hidden in following for after in self.shift(stack, hidden))

    def _hidden_in(self, state: int, *, ends_line: bool) -> list[int]:
        """The hidden terminals that are allowed in a state."""
        found = self._hidden_known.get((state, ends_line))
        if found is None:
            does, ends = self._does[state], self._line_ends
            found = [symbol for symbol in self.hidden if symbol in does and (ends_line or symbol not in ends)]
            self._hidden_known[state, ends_line] = found
        return found

    def take_whole(self, stacks: list[Stack], node: Node) -> list[Stack]:
        """Return the stacks after a sound subtree that has leaves; empty where it cannot be taken at once."""
        first = node
        while first.child_count and (child := first.child(0)):
            first = child
        symbols = first.grammar_id, node.grammar_id
        for _ in range(1 + MAX_HIDDEN):
            if found := _distinct(after for stack in stacks for after in self._go(stack, *symbols)):
                return found
            stacks = self.past_hidden(stacks)
        return []

    def _go(self, stack: Stack, first: int, symbol: int, depth: int = 0) -> Iterator[Stack]:
        """The stacks after a nonterminal that begins with the terminal ``first``.

        Where ``first`` only reduces, the nonterminal continues a repetition, which is reduced first.
        """
        actions = self._does[stack[-1]].get(first, ())
        begins = not actions or any(action.kind == SHIFT for action in actions)
        if begins and (state := self._goes[stack[-1]].get(symbol)):
            yield (*stack, state)
        for action in actions if depth < MAX_REDUCTIONS else ():
            if action.kind == REDUCE and (reduced := self.reduce(stack, action)):
                yield from self._go(reduced, first, symbol, depth + 1)


@cache
def parse_table(language: Language) -> ParseTable | None:
    """Return the table of a language, read once; None for an unsupported ABI."""
    return ParseTable(language) if OLDEST_ABI <= language.grammar().abi_version <= NEWEST_ABI else None


def _distinct(stacks: Iterable[Stack]) -> list[Stack]:
    return list(dict.fromkeys(stacks))[:MAX_STACKS]


NODE_NS = 8_000  # of work, for each node that is read
MAX_STATES = 1_500  # of a stack: all stacks behind the last words are kept; real files have a few hundred
NEAR = 8_000  # bytes before the end of a text; further away whole subtrees are read at once
WORD = re.compile(rb"[\w$\x80-\xff]")


class Read(NamedTuple):
    """The end of a terminal, or of a subtree, that was read, and the stacks there: none if it cannot follow."""

    end: int
    stacks: list[Stack]


class Prefix:
    """Reads texts that begin alike; error recovery may name their terminals wrongly."""

    def __init__(self, language: Language, table: ParseTable) -> None:
        self._table = table
        name = language.grammar().id_for_node_kind("identifier", True)
        self._names = ((name,),) if name is not None else ()
        self._parser, self._text = language.parser(), b""
        self._tree = self._parser.parse(b"")
        self._read = [Read(0, [START])]

    def read(self, text: bytes) -> list[Read]:
        """Return what was read of a text, up to its end or to what the grammar cannot read.

        Raises UnparsableError where too much is open.
        """
        old, same = self._text, num_common(self._text, text)
        if text != old:
            known = edited(self._tree, text[:same], old[same:], text[same:])
            self._text, self._tree = text, self._parser.parse(text, known)
        root = self._tree.root_node
        while len(self._read) > 1 and (self._read[-1].end >= same or _is_inside_leaf(root, self._read[-1].end)):
            self._read.pop()
        begin, waiting = self._read[-1].end, [root]
        while waiting and (stacks := self._read[-1].stacks):
            if len(stacks[0]) > MAX_STATES:
                raise UnparsableError(f"what is open at byte {begin} of the text is nested too deeply")
            node = waiting.pop()
            if node.end_byte <= begin or (node.is_extra and not node.is_error):
                continue
            is_far = begin <= node.start_byte and node.end_byte <= len(text) - NEAR and not node.has_error
            if not node.child_count:
                if begin <= node.start_byte < node.end_byte:
                    work.spend(NODE_NS)
                    self._read.append(Read(node.end_byte, self._table.read_any(stacks, self._terminal(text, node))))
            elif is_far and (taken := self._table.take_whole(stacks, node)):
                work.spend(NODE_NS)
                self._read.append(Read(node.end_byte, taken))
            else:
                waiting += reversed(node.children)
        return self._read

    def _terminal(self, text: bytes, leaf: Node) -> Terminal:
        """A leaf of a text as the terminals that it may be."""
        word = text[leaf.start_byte : leaf.end_byte]
        alike = (*self._table.spellings.get(word, ()), leaf.grammar_id)
        names = self._names if WORD.match(word) else ()
        on_new_line = b"\n" in text[self._read[-1].end : leaf.start_byte]
        return Terminal(word, (tuple(dict.fromkeys(alike)), *names), on_new_line)


def _is_inside_leaf(root: Node, offset: int) -> bool:
    """Whether an offset is inside a leaf."""
    node = root.descendant_for_byte_range(max(offset - 1, 0), offset + 1)
    return node is not None and not node.child_count and node.start_byte < offset < node.end_byte
