"""Repair: finds in the grammar the terminals that connect an unfinished fill to the suffix of its gap.

A valid fill gives the LR stack at the start of the suffix. The shortest way from the stack after an unfinished fill to
that stack is a search over insertions, as in the error repair of Corchuelo et al. (Repairing syntax errors in LR
parsers, 2002) and of Diekmann and Tratt (Don't Panic!, ECOOP 2020).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise, product, tee

from tree_sitter import Tree

from lacuna_model.languages.language import Language
from lacuna_model.syntax.completion.kept_parts import KeptParts
from lacuna_model.syntax.completion.prefix import Prefix, Read, token_start
from lacuna_model.syntax.lr.best_first import Way, best_first
from lacuna_model.syntax.lr.insertions import COST_WORD, MAX_INSERTED, spelled
from lacuna_model.syntax.lr.parse_table import ParseTable, Stack, parse_table
from lacuna_model.syntax.lr.piece_cache import pieces_of

MAX_VISITED = 60
MAX_FOUND = 12
# The word or the marks that a text ends with.
LAST_TOKEN = re.compile(rb"(#?\w+)\Z|[^\w\s]{1,2}\Z")
RESTS = (b"_", b">", b"'", b"x'", b"]", b"0")  # possible rests of an unfinished terminal
MAX_HALF = 80
COST_OPENED = 0.5  # per terminal that opens what the suffix closes
COST_BEYOND = 1.0  # for continuing after a completion was found
COST_PER_STATE = 1.0  # per state that is not on the stack to be reached
COST_PER_LACKING = 0.5  # per state that is only on that stack

# The text that ends a fill: terminals to write, and the place from which the sound fill's end follows.
Ending = tuple[tuple[bytes, ...], int]


class Repair:
    """Completions of one gap's fills, given a sound ``tree`` of its ``text`` with some fill.

    A completion consists of new terminals and an end of the sound fill, which may be empty. What ``known``, a repair of
    the same gap by another tree, has read of the text before the gap is used again.
    """

    def __init__(
        self,
        language: Language,
        table: ParseTable,
        tree: Tree,
        text: bytes,
        gap: tuple[int, int],
        known: "Repair | None" = None,
    ) -> None:
        self._table = table
        self._insertions, self._pieces = pieces_of(language, table)
        if known is None:
            # A token that touches the gap from the left may begin a longer word: it is read with the fill.
            self._begin: int = token_start(tree, gap[0])
            self._prefix: Prefix = Prefix(language, table, sound=True)
            self._before: list[Stack] = self._prefix.start(text, tree, self._begin)
            self._behind: dict[bytes, tuple[Way[Stack], ...]] = {}
        else:
            self._begin, self._prefix = known._begin, known._prefix
            self._before, self._behind = known._before, known._behind
        self._known: dict[bytes, Iterator[bytes]] = {}
        self._searched: dict[tuple[Way[Stack], ...], Iterator[Ending]] = {}
        gap = self._begin, gap[1]
        self._sound = KeptParts(language, self._prefix.terminals, tree, text, gap, table, self._before)
        self._targets = self._sound.targets
        self._lasts = [(target, {state: place for place, state in enumerate(target, 1)}) for target in self._targets]
        # Each target, and how many states at its bottom it shares with a stack of the prefix; most stacks share these.
        self._bottoms = [(target, _alike_below(target, self._before[0])) for target in self._targets if self._before]

    def completions(self, text: bytes) -> Iterator[bytes]:
        """Yield texts that may end a fill, likeliest first; ``text`` is the prefix with the beginning of the fill.

        Results are kept, since step after step asks for the same texts.
        """
        self._known[text], found = tee(self._known.get(text) or self._find(text))
        return found

    def _find(self, text: bytes) -> Iterator[bytes]:
        seen = set()
        for (word_end, *written), place in self._endings(self._starts(text)):
            completion = word_end + spelled(text + word_end, [*written, self._sound.end(place)])
            if (solid := b"".join(completion.split())) not in seen:
                seen.add(solid)
                yield completion

    def _starts(self, text: bytes) -> tuple[Way[Stack], ...]:
        """The stacks after a text, and those where its last word is the beginning of a longer one.

        The text to write to reach them begins with the rest of that word, which may be empty.
        """
        if text not in self._behind:
            read = self._prefix.read(text)
            plain = (Way(stack, (b"",)) for stack in read[-1].stacks)
            longer = self._longer(text, read)
            finished = self._finished(text, *read[-2]) if not read[-1].stacks and len(read) > 1 else ()
            self._behind[text] = (*plain, *longer, *finished)
        return self._behind[text]

    def _longer(self, text: bytes, read: list[Read]) -> Iterator[Way[Stack]]:
        """The stacks after a keyword or mark whose beginning ends the text, and the rest of that keyword or mark."""
        match = LAST_TOKEN.search(text, self._begin)
        for begin in range(match.start(), match.start() + 1 if match[1] else len(text)) if match else ():
            before = next((stacks for end, stacks in reversed(read) if end <= begin and stacks), [])
            for terminal, whole in self._insertions.longer(text[begin:]):
                for stack in self._table.read(before, terminal):
                    yield Way(stack, (whole[len(text) - begin :],), COST_WORD)

    def _finished(self, text: bytes, end: int, stacks: list[Stack]) -> Iterator[Way[Stack]]:
        """The stacks after a text that cannot be read to its end, if its rest begins a terminal."""
        half = text[end:].lstrip()
        for rest, stack in product(RESTS, [*stacks, *self._table.past_hidden(stacks)]) if len(half) < MAX_HALF else ():
            terminal = self._table.token(stack[-1], half + rest)
            if terminal is not None:
                for after in self._table.shift(stack, terminal):
                    yield Way(after, (rest,), COST_WORD)

    def _endings(self, starts: tuple[Way[Stack], ...]) -> Iterator[Ending]:
        """The results of a search; texts that differ only in their names leave the same stacks."""
        self._searched[starts], found = tee(self._searched.get(starts) or self._search(starts))
        return islice(found, MAX_FOUND)

    def _search(self, starts: Iterable[Way[Stack]]) -> Iterator[Ending]:
        goals: dict[Stack, int] = {}

        def moves(way: Way[Stack]) -> Iterator[Way[Stack]]:
            return self._moves(way._replace(cost=way.cost + COST_BEYOND) if way.state in goals else way)

        for way in best_first(starts, moves, self._distance, most=MAX_VISITED):
            place = self._sound.place(way.state)
            if place is not None:
                goals[way.state] = place
                yield (*way.text, *self._sound.line_before(way.state, place)), place

    def _moves(self, way: Way[Stack]) -> Iterator[Way[Stack]]:
        """One step of the search: the end of a construct, all openers that the suffix needs, or one terminal."""
        stack, text, cost = way
        if len(text) > MAX_INSERTED:
            return
        yield from self._pieces.ended(way)
        for target, lasts in self._lasts:
            since = lasts.get(stack[-1])
            if since and (opening := self._opening(target, since)):
                yield Way(stack + target[since:], text + opening, cost + COST_OPENED * len(opening))
        yield from self._insertions.written(way)

    def _opening(self, target: Stack, since: int) -> tuple[bytes, ...] | None:
        """The shortest text that builds the states of a stack after its first ``since`` ones; None for none."""
        pieces = [self._pieces.between(*pair) for pair in pairwise(target[since - 1 :])]
        return tuple(text for piece in pieces if piece for text in piece.text) if None not in pieces else None

    def _distance(self, stack: Stack) -> float:
        """The estimated cost from a stack to one that the suffix, or an end of the sound fill, can follow."""
        return min((_apart(stack, target, bottom) for target, bottom in self._bottoms), default=0.0)


def repair_for(
    language: Language, tree: Tree, text: bytes, gap: tuple[int, int], known: Repair | None
) -> Repair | None:
    """Return the repair of a gap, a byte range of a sound tree's text; None where the grammar cannot be read.

    The results of ``known``, a repair by another tree with the same prefix, are used again.
    """
    table = parse_table(language)
    if table is None:
        return None
    return Repair(language, table, tree, text, gap, known)


def _alike_below(one: Stack, other: Stack, known: int = 0) -> int:
    """How many states two stacks have in common at their bottoms, most likely at least ``known``."""
    found = known if one[:known] == other[:known] else 0
    most = min(len(one), len(other))
    while found < most and one[found] == other[found]:
        found += 1
    return found


def _apart(stack: Stack, target: Stack, bottom: int) -> float:
    """The estimated cost of making ``target`` of a stack; both share their bottoms and maybe their tops."""
    below = _alike_below(stack, target, bottom)
    shared = below + min(alike(stack, target), min(len(stack), len(target)) - below)
    return COST_PER_STATE * (len(stack) - shared) + COST_PER_LACKING * (len(target) - shared)


def alike(one: Stack, other: Stack) -> int:
    """How many states two stacks have in common at their tops."""
    found = 0
    for mine, yours in zip(reversed(one), reversed(other), strict=False):
        if mine != yours:
            break
        found += 1
    return found
