"""Completions found in the grammar where no valid fill is known that could tell what is missing.

The prefix of a gap gives the parser's stacks, and its suffix the terminals that must be readable after the fill. This
is the goal of Corchuelo et al. (Repairing syntax errors in LR parsers, 2002).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

from tree_sitter import Node

from lacuna_model.languages.language import Language
from lacuna_model.syntax.completion.between import PAIRS, Bridge
from lacuna_model.syntax.completion.prefix import Prefix
from lacuna_model.syntax.completion.suffix import suffix_of
from lacuna_model.syntax.lr.best_first import Way, best_first
from lacuna_model.syntax.lr.insertions import COST_NEWLINE, MAX_INSERTED, spelled
from lacuna_model.syntax.lr.parse_table import END, Stack, Terminal
from lacuna_model.syntax.lr.piece_cache import pieces_of, ways_of
from lacuna_model.syntax.text.balance import Sides
from lacuna_model.syntax.text.columns import open_lines
from lacuna_model.syntax.text.literals import find_literals, finish_token
from lacuna_model.syntax.text.minimal_completions import Closer, unseen
from lacuna_model.syntax.text.scan import Scan, scan, scan_brackets

MAX_FOUND = 48
MAX_OPENED = 6
MAX_ENDINGS = 400  # stacks from which the end of a text is searched for
COST_PER_STATE = 1.0  # per state on the stack there: open constructs must be ended
OPENERS = {closer: opener for opener, closer in PAIRS.items()}

Brackets = tuple[bytes, ...]


class GrammarCompletions(Closer):
    """Completions of a gap whose prefix (``front``) has no unfilled gaps.

    The suffix reaches to the next gap, and a later gap may close what it leaves open. Where there is no next gap, the
    text must be whole at its end.
    """

    def __init__(self, sides: Sides, language: Language, reader: Prefix, front: bytes) -> None:
        super().__init__(replace(sides, text=front))
        self._front, self._reader = front, reader
        self._side = sides.right
        self._language, self._table = language, reader.table
        self._insertions, self._pieces = pieces_of(language, reader.table)
        self._steps = ways_of(language, reader.table)
        self._opener = self._lexicon.opener_of(self._side.inside) if self._side.inside else b""

    def completions(self, fill: bytes) -> Iterator[bytes]:
        """Yield texts to append to the beginning of a fill, cheapest first."""
        half = self._literal_end(fill)
        text = self._front + fill + half
        left = self._open_in(fill + half)
        suffix = suffix_of(self._table, self._behind)
        bridge = Bridge(self._table, self._pieces, self._steps, self._starts(text), suffix)
        found = (written for written in bridge.texts() if self._balances(*_brackets(left, written)))
        ends = (spelled(text, [*written, self._opener or self._apart(written)]) for written in found)
        for completion in islice(unseen(ends, set()), MAX_FOUND):
            yield half + completion

    def _literal_end(self, fill: bytes) -> bytes:
        inside = scan(fill, self._lexicon, self._sides.left).inside
        return finish_token(fill, inside) or inside

    def endings(self) -> Iterator[bytes]:
        """Yield texts to append to the prefix so that it is whole: open constructs are ended, and no more is begun."""
        half = self._literal_end(b"")
        text = self._front + half
        found = (spelled(text, written) for written in self._wholes(self._starts(text)))
        for ending in islice(unseen(found, set()), MAX_FOUND):
            yield half + ending

    def _wholes(self, starts: Iterable[Way[Stack]]) -> Iterator[tuple[bytes, ...]]:
        """The terminals to write after some stacks so that the text may end there, roughly cheapest first."""
        ways = best_first(starts, self._moves, lambda stack: COST_PER_STATE * len(stack), most=MAX_ENDINGS)
        yield from (way.text for way in ways if self._table.read([way.state], END, on_new_line=True))

    def _moves(self, way: Way[Stack]) -> Iterator[Way[Stack]]:
        """One step: the end of a construct, or one terminal."""
        yield from self._pieces.ended(way)
        if len(way.text) <= MAX_INSERTED:
            yield from self._insertions.written(way)

    def _open_in(self, fill: bytes) -> Brackets:
        """The brackets that are open after a fill; those of the prefix are counted once."""
        if self._sides.left.inside:
            return scan_brackets(self._front + fill, self._lexicon).closers
        return scan_brackets(fill, self._lexicon, self._open_in_front).closers

    @cached_property
    def _open_in_front(self) -> Scan:
        return scan_brackets(self._front, self._lexicon)

    def _apart(self, written: Sequence[bytes]) -> bytes:
        """A blank if the last word that is written would merge with the suffix."""
        return b" " if written and written[-1][-1:].isalnum() and self._side.text[:1].isalnum() else b""

    @cached_property
    def _behind(self) -> tuple[Terminal, ...]:
        """The terminals of the suffix, parsed as it is or after openers of the brackets that it closes."""
        parser, opener = self._language.parser(), self._opener
        closed = b"".join(OPENERS.get(bracket.closer, b"") for bracket in reversed(self._side.unmatched))
        # a literal that the next gap begins in is ended there
        whole = self._side.text + find_literals(self._side.text, self._lexicon, self._side.inside).inside
        trees = [(lead, parser.parse(lead + whole).root_node) for lead in (opener, closed + opener)]
        lead, root = min(trees, key=lambda tree: _amiss(tree[1]))
        begin = len(lead) - len(opener)
        return self._reader.terminals.behind(lead + whole, root, begin, to_the_end=self._side.to_the_end)

    def _balances(self, kept: Brackets, opened: Brackets) -> bool:
        """Whether the suffix closes the open brackets; another gap has to close those that it leaves open."""
        if self._side.to_the_end and self._side.whole and self._side.unmatched:
            return kept + opened == tuple(bracket.closer for bracket in reversed(self._side.unmatched))
        return opened in self._goals

    @cached_property
    def _goals(self) -> set[Brackets]:
        """The brackets that a fill may open: those that the suffix closes, maybe inside one that a later text does."""
        closers = [bracket.closer for bracket in self._side.unmatched[:MAX_OPENED]]
        goals = {tuple(reversed(closers[:number])) for number in range(len(closers) + 1)}
        if self._side.to_the_end:
            return goals
        return goals | {(outer, *goal) for goal in goals for outer in PAIRS.values()}

    def _starts(self, text: bytes) -> Iterator[Way[Stack]]:
        """The stacks after a text, and after its line end where that is a terminal."""
        blank = not text.rpartition(b"\n")[2].strip()
        leads = self._line_starts(text) if self._lexicon.columns else []
        for stack in self._reader.stacks(text):
            ended = list(self._ended(stack, leads))
            if not (blank and ended):  # otherwise the line must have ended
                yield Way(stack)
            yield from ended
            for terminal in self._insertions.line_ends(stack[-1]) if blank else ():
                yield from map(Way, self._table.shift(stack, terminal))

    def _ended(self, stack: Stack, leads: Sequence[bytes | None]) -> Iterator[Way[Stack]]:
        """A stack after the end of its line and of its indented blocks, one by one, with the text that leads there."""
        stacks = [stack]
        for number, lead in enumerate(leads, start=1):
            stacks = self._table.past_hidden(stacks)
            if lead is not None:
                yield from (Way(one, (lead,) if lead else (), COST_NEWLINE * number) for one in stacks)

    def _line_starts(self, text: bytes) -> list[bytes | None]:
        """The text that leads to the next line of each open block, innermost first.

        None stands for a block that the indentation of the current line does not fit.
        """
        bare = bytearray(text)
        for begin, end in find_literals(text, self._lexicon).spans:
            bare[begin:end] = bare[begin:end].replace(b"\n", b" ")
        line = text.rpartition(b"\n")[2]
        starts = [
            self._operands.mark * opened.column for opened in reversed(open_lines(bytes(bare), self._operands.unit))
        ]
        if line.strip():
            return [self._operands.newline + start for start in starts]
        return [start[len(line) :] if start.startswith(line) else None for start in starts]


def _brackets(kept: Brackets, written: Iterable[bytes]) -> tuple[Brackets, Brackets]:
    """Return the brackets that stay open and the new ones that are open, after some written text.

    The grammar decides whether a closer is allowed: the brackets of the prefix may have been miscounted.
    """
    opened: Brackets = ()
    for mark in written:
        if mark in PAIRS:
            opened = (*opened, PAIRS[mark])
        elif mark in OPENERS:
            kept, opened = (kept, opened[:-1]) if opened else (kept[:-1], opened)
    return kept, opened


def _amiss(node: Node) -> int:
    """How many bytes of a text lie in errors of its tree."""
    amiss, waiting = 0, [node]
    while waiting:
        broken = [child for child in waiting.pop().children if child.has_error]
        amiss += sum(child.end_byte - child.start_byte for child in broken if child.is_error)
        waiting += [child for child in broken if not child.is_error]
    return amiss
