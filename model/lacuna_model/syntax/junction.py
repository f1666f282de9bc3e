"""Junctions: completions that are found in the grammar where no valid fill is known that could tell what is lacking.

The text in front of a gap tells the parser's stacks there. What may be written is searched from these, cheapest first,
until the parser can read the text behind the gap, which is the goal that Corchuelo et al. have (Repairing syntax
errors in LR parsers, 2002). A state is looked at once for all stacks that have as much of the left side in common and
as many brackets open: there is hardly another way to read what follows from it.
"""

import heapq
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import chain, count, islice
from typing import NamedTuple

from tree_sitter import Node, Parser

from lacuna_model.syntax.balance import Sides
from lacuna_model.syntax.behind import REACH
from lacuna_model.syntax.closing import Closer, unseen
from lacuna_model.syntax.insertions import WORD
from lacuna_model.syntax.languages import Language
from lacuna_model.syntax.literals import find_literals, finish_token
from lacuna_model.syntax.naming import with_heads
from lacuna_model.syntax.parse_table import END, MOST_STACKS, START, ParseTable, Stack, leaves
from lacuna_model.syntax.piece_cache import pieces_of
from lacuna_model.syntax.placement_rules import RULES
from lacuna_model.syntax.repair import spelled
from lacuna_model.syntax.scan import scan, scan_brackets

MOST_VISITED = 8000
MOST_VISITED_TO_END = 500  # where nothing follows, what is open has only to be closed
MOST_FOUND = 24
MOST_WRITTEN = 14
MOST_OPENED = 6
COST_BEYOND = 2.0  # for going on behind what would do
COST_OPEN = 0.6  # the least that it costs to close a bracket
PAIRS = {b"(": b")", b"[": b"]", b"{": b"}"}
OPENERS = {closer: opener for opener, closer in PAIRS.items()}
TAKEN_APART = re.compile(rb"=>|->|\$\w+")  # where the parser can make nothing of the text around

Brackets = tuple[bytes, ...]


class Terminal(NamedTuple):
    """A word of the text, and what it may be for the parser: what it is in one state it need not be in another."""

    word: bytes
    symbols: tuple[int, ...]
    on_new_line: bool


class _Way(NamedTuple):
    """A text that may be written, the stack behind it, and the brackets that it keeps open and that it opens.

    ``rank`` is what it costs, and what is certainly still to come. ``base`` is how much of the stack was there in front
    of it: the state behind that tells the kind of the statement. Where nothing is behind it, ``base`` tells ways apart:
    a statement may end within another one, a loop, in the same state and with the same brackets open.
    """

    rank: float
    serial: int
    cost: float
    stack: Stack
    base: int
    kept: Brackets
    opened: Brackets
    written: tuple[bytes, ...]


class Junction(Closer):
    """Completions of a gap in front of which nothing is lacking any more.

    The text behind it goes to the next gap, and what it leaves open is for a later one to close; where there is none
    the completion is an ending.
    """

    def __init__(self, sides: Sides, language: Language, table: ParseTable, front: bytes) -> None:
        super().__init__(replace(sides, text=front))
        self._front = front
        self._side = sides.right
        self._language, self._table = language, table
        self._insertions, self._pieces = pieces_of(language, table)
        self._name = language.grammar().id_for_node_kind("identifier", True)
        self._orders: dict[tuple[int, Terminal], tuple[int, ...]] = {}

    def completions(self, fill: bytes) -> Iterator[bytes]:
        """Texts to put behind the beginning of a fill, the cheapest first."""
        inside = scan(fill, self._lexicon, self._sides.left).inside
        half = finish_token(fill, inside) or inside
        text = self._front + fill + half
        stacks = self._stacks(text)
        opener = self._lexicon.opener_of(self._side.inside) if self._side.inside else b""
        behind = self._behind(opener)
        on_new_line = not text.rpartition(b"\n")[2].strip()
        left = tuple(bracket.closer for bracket in scan_brackets(text, self._lexicon).stack)
        found = self._search(stacks, left, behind, on_new_line=on_new_line)
        ends = (spelled(text, [*written, opener or self._apart(written)]) for written in found)
        for completion in islice(unseen(ends, set()), MOST_FOUND):
            yield with_heads(half + completion, self._heads)

    def _apart(self, written: Sequence[bytes]) -> bytes:
        """What keeps the last word that is written apart from what follows."""
        return b" " if written and written[-1][-1:].isalnum() and self._side.text[:1].isalnum() else b""

    def _stacks(self, text: bytes) -> list[Stack]:
        stacks, end = [START], 0
        root = Parser(self._language.grammar()).parse(text).root_node
        for leaf in leaves(root, 0):
            stacks = self._read(stacks, self._terminal(text, leaf, end))
            end = leaf.end_byte
        return stacks

    def _behind(self, opener: bytes) -> list[Terminal]:
        """The terminals of the text behind the gap: read as it is, or behind the brackets that it closes.

        A comment or string that the next gap stands in is ended there.
        """
        parser = Parser(self._language.grammar())
        closed = b"".join(OPENERS.get(bracket.closer, b"") for bracket in reversed(self._side.unmatched))
        whole = self._side.text + find_literals(self._side.text, self._lexicon, self._side.inside).inside
        trees = [(lead, parser.parse(lead + whole).root_node) for lead in (opener, closed + opener)]
        lead, root = min(trees, key=lambda tree: _amiss(tree[1]))
        text = lead + whole
        found: list[Terminal] = []
        end = len(lead) - len(opener)
        for leaf in leaves(root, end):
            word = found[-1].word + text[end : leaf.end_byte] if found and leaf.start_byte == end else b""
            if TAKEN_APART.fullmatch(word):
                found[-1] = found[-1]._replace(word=word, symbols=tuple(self._insertions.spellings.get(word, ())))
            elif not _is_comment(leaf):
                found.append(self._terminal(text, leaf, end))
            if len(found) == REACH:
                break
            end = leaf.end_byte
        return found

    def _terminal(self, text: bytes, leaf: Node, end: int) -> Terminal:
        """What a leaf is, behind one that ends at ``end``."""
        word = text[leaf.start_byte : leaf.end_byte]
        symbols = [*self._insertions.spellings.get(word, ()), leaf.grammar_id]
        if self._name is not None and self._reserved.fullmatch(word):
            symbols = [one for one in symbols if one != self._name] or symbols
        elif self._name is not None and WORD.match(word):
            symbols.append(self._name)
        return Terminal(word, tuple(dict.fromkeys(symbols)), b"\n" in text[end : leaf.start_byte])

    def _read(self, stacks: Sequence[Stack], terminal: Terminal) -> list[Stack]:
        found: dict[Stack, None] = {}
        for stack in stacks:
            symbols = self._order(stack[-1], terminal)
            read = (self._table.read([stack], one, on_new_line=terminal.on_new_line) for one in symbols)
            found |= dict.fromkeys(next(filter(None, read), []))
        return list(found)[:MOST_STACKS]

    def _order(self, state: int, terminal: Terminal) -> tuple[int, ...]:
        """What a word may be in a state: words of the language come first, of the rest what the lexer takes it for.

        Where the parser could make nothing of the text, the lexer may know better what it is.
        """
        key = state, terminal
        if key not in self._orders:
            lexed = self._table.token(state, terminal.word)
            own = () if lexed in (None, self._name) else (lexed,)
            order = (*own, *terminal.symbols) if lexed in terminal.symbols else (*terminal.symbols, *own)
            self._orders[key] = tuple(dict.fromkeys(order))
        return self._orders[key]

    def _search(
        self, stacks: Iterable[Stack], left: Brackets, behind: Sequence[Terminal], *, on_new_line: bool
    ) -> Iterator[tuple[bytes, ...]]:
        serial = count()
        starts = (start for stack in stacks for start in (self._with_line_end(stack) if on_new_line else [stack]))
        waiting = [_Way(0.0, next(serial), 0.0, stack, len(stack), left, (), ()) for stack in starts]
        begun = {goal[:length] for goal in self._goals for length in range(len(goal) + 1)}
        seen: set[Hashable] = set()
        most = MOST_VISITED if self._side.text else MOST_VISITED_TO_END
        while waiting and len(seen) < most:
            way = heapq.heappop(waiting)
            key = _place(way.kept, way.opened, way.stack, way.base)
            if key in seen:
                continue
            seen.add(key)
            spent = way.cost
            if self._balances(way.kept, way.opened) and self._joins(way.stack, behind):
                yield way.written
                spent += COST_BEYOND
            for text, price, stack in self._moves(way.stack) if len(way.written) < MOST_WRITTEN else ():
                brackets, base = _brackets(way.kept, way.opened, text), min(way.base, len(stack))
                begins = brackets[1] in begun or brackets[1][:-1] in begun
                if begins and _place(*brackets, stack, base) not in seen:
                    cost, written = spent + price, way.written + text
                    rank = cost + (0.0 if self._side.text else COST_OPEN * len(brackets[0] + brackets[1]))
                    heapq.heappush(waiting, _Way(rank, next(serial), cost, stack, base, *brackets, written))

    def _balances(self, kept: Brackets, opened: Brackets) -> bool:
        """Whether the text behind the gap closes what is open; what it leaves open another gap has to close."""
        if self._side.to_the_end and self._side.whole and self._side.unmatched:
            return kept + opened == tuple(bracket.closer for bracket in reversed(self._side.unmatched))
        return opened in self._goals

    @cached_property
    def _goals(self) -> set[Brackets]:
        """What a fill may open: brackets that the text behind it closes, maybe in one that a later text does."""
        closers = [bracket.closer for bracket in self._side.unmatched[:MOST_OPENED]]
        goals = {tuple(reversed(closers[:number])) for number in range(len(closers) + 1)}
        if self._side.to_the_end:
            return goals
        return goals | {(outer, *goal) for goal in goals for outer in PAIRS.values()}

    def _moves(self, stack: Stack) -> Iterator[tuple[tuple[bytes, ...], float, Stack]]:
        """What may be written next: the end of what the stack is in the middle of, or one terminal."""
        for ending in self._pieces.endings(stack[-1]):
            if reduced := self._table.reduce(stack, ending.reduction):
                yield ending.text, ending.cost, reduced
        for one in self._insertions.all_at(stack[-1]):
            for after in self._table.shifted(stack[-1], one.terminal):
                yield (one.text,), one.cost, (*stack, after)

    def _joins(self, stack: Stack, behind: Sequence[Terminal]) -> bool:
        """Whether the text behind the gap can be read from here."""
        stacks = list(self._with_line_end(stack))
        if behind and not any(self._table.knows(one[-1], terminal) for one in stacks for terminal in behind[0].symbols):
            return False
        for terminal in behind:
            stacks = self._read(stacks, terminal)
            if not stacks:
                return False
        if not self._side.to_the_end or len(behind) == REACH:
            return True
        return bool(self._table.read(stacks, END, on_new_line=True))

    def _with_line_end(self, stack: Stack) -> Iterator[Stack]:
        """A stack, and the same behind a line's end, where that means something."""
        yield stack
        for one in self._insertions.all_at(stack[-1]):
            if one.text == b"\n":
                yield from self._table.shift(stack, one.terminal)


def _place(kept: Brackets, opened: Brackets, stack: Stack, base: int) -> Hashable:
    """What is looked at once: where nothing is open that was not there before, how far down the stack is that."""
    return kept, opened, stack[base : base + 1] or len(stack), stack[-1]


@lru_cache(maxsize=1 << 14)
def _brackets(kept: Brackets, opened: Brackets, written: tuple[bytes, ...]) -> tuple[Brackets, Brackets]:
    """The brackets that are kept and those that are open besides, behind some text more.

    Whether a closer may be written is the grammar's to say: in front of the gap brackets may have been miscounted.
    """
    for mark in written:
        if mark in PAIRS:
            opened = (*opened, PAIRS[mark])
        elif mark in OPENERS:
            kept, opened = (kept, opened[:-1]) if opened else (kept[:-1], opened)
    return kept, opened


def _amiss(node: Node) -> int:
    """How many bytes of a text the parser could make nothing of."""
    return sum(
        child.end_byte - child.start_byte if child.is_error else _amiss(child)
        for child in node.children
        if child.has_error
    )


def _is_comment(leaf: Node) -> bool:
    return leaf.parent is not None and "comment" in leaf.parent.type
