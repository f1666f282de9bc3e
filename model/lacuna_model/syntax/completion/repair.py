"""Repair: finds in the grammar the terminals that connect an unfinished fill to the suffix of its gap.

A valid fill gives the LR stack at the start of the suffix. The shortest way from the stack after an unfinished fill to
that stack is a search over insertions, as in the error repair of Corchuelo et al. (Repairing syntax errors in LR
parsers, 2002) and of Diekmann and Tratt (Don't Panic!, ECOOP 2020).
"""

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise, product, tee

from tree_sitter import Tree

from lacuna_model.languages.language import Language
from lacuna_model.syntax.completion.kept_parts import KeptParts
from lacuna_model.syntax.completion.suffix_stacks import SuffixStacks, alike
from lacuna_model.syntax.lr.insertions import COST_WORD, MOST_INSERTED, WORD
from lacuna_model.syntax.lr.parse_table import ParseTable, Stack, leaves, parse_table
from lacuna_model.syntax.lr.piece_cache import pieces_of
from lacuna_model.syntax.lr.reparse import Reparser

MOST_VISITED = 60
MOST_READ = 250  # terminals of the suffix, in one search
MOST_FOUND = 12
DIRECTIVE = re.compile(rb"#[a-z]")
# The word or the marks that a text ends with.
LAST_TOKEN = re.compile(rb"(#?\w+)\Z|[^\w\s]{1,2}\Z")
RESTS = (b"_", b">", b"'", b"x'", b"]", b"0")  # possible rests of an unfinished terminal
MOST_HALF = 80
COST_OPENED = 0.5  # per terminal that opens what the suffix closes
COST_BEYOND = 1.0  # for continuing after a completion was found
COST_PER_STATE = 1.0  # per state that is not on the stack to be reached
COST_PER_LACKING = 0.5  # per state that is only on that stack

# A stack after the beginning of a fill, and the text to write first: the rest of its last word, or nothing.
Start = tuple[Stack, tuple[bytes, ...]]


class Repair:
    """Completions of one gap's fills, given a sound ``tree`` of its ``text`` with some fill.

    A completion consists of new terminals and an end of the sound fill, which may be empty. The results of ``known``, a
    repair of the same gap by another tree, are used again.
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
        # A token that touches the gap from the left may begin a longer word: it is read with the fill.
        self._begin: int = _token_start(tree, gap[0]) if known is None else known._begin
        gap = self._begin, gap[1]
        self._reparser: Reparser = Reparser(language, self._begin) if known is None else known._reparser
        # The stacks before the text that is read, and those after each text.
        self.before: list[Stack] = table.take(tree, self._begin) if known is None else known.before
        self._behind: dict[bytes, list[Start]] = {} if known is None else known._behind
        self._known: dict[bytes, Iterator[bytes]] = {}
        self._searched: dict[tuple[Start, ...], Iterator[tuple[tuple[bytes, ...], int]]] = {}
        self._known_behind: dict[frozenset[Stack], SuffixStacks] = {} if known is None else known._known_behind
        self._sound = KeptParts(language, table, tree, text, gap, self.before, self._known_behind)
        self._targets = self._sound.targets
        self._lasts = [(target, {state: place for place, state in enumerate(target, 1)}) for target in self._targets]
        # Each target, and how many states at its bottom it shares with a stack of the prefix; most stacks share these.
        self._bottoms = [(target, _alike_below(target, self.before[0])) for target in self._targets if self.before]

    def completions(self, text: bytes) -> Iterator[bytes]:
        """Yield texts that may end a fill, likeliest first; ``text`` is the prefix with the beginning of the fill.

        Results are kept, since step after step asks for the same texts.
        """
        self._known[text], found = tee(self._known.get(text) or self._find(text))
        return found

    def _find(self, text: bytes) -> Iterator[bytes]:
        seen = set()
        for (word_end, *written), place in self._ways(tuple(self._starts(text))):
            completion = word_end + spelled(text + word_end, [*written, self._sound.end(place)])
            if (solid := b"".join(completion.split())) not in seen:
                seen.add(solid)
                yield completion

    def reads(self, text: bytes) -> bool:
        """Whether the grammar can read a text as far as it goes."""
        return bool(self._starts(text))

    def _starts(self, text: bytes) -> list[Start]:
        """The stacks after a text, and those where its last word is the beginning of a longer one."""
        if text not in self._behind:
            self._behind[text] = list(self._read(text))
        return self._behind[text]

    def _read(self, text: bytes) -> Iterator[Start]:
        tree = self._reparser.parse(text)
        stacks, end = self.before, len(text[: self._begin].rstrip())
        read = [(self._begin, stacks)]  # the ends of what was read, and the stacks there
        for leaf in leaves(tree.root_node, self._begin):
            on_new_line = b"\n" in text[end : leaf.start_byte]
            stacks, end = self._table.read(stacks, leaf.grammar_id, on_new_line=on_new_line), leaf.end_byte
            if not stacks:
                break
            read.append((end, stacks))
        yield from ((stack, (b"",)) for stack in stacks)
        yield from self._longer(text, read)
        if not stacks:
            yield from self._finished(text, *read[-1])

    def _longer(self, text: bytes, read: list[tuple[int, list[Stack]]]) -> Iterator[Start]:
        """The stacks after a keyword or mark whose beginning ends the text, and the rest of that keyword or mark."""
        match = LAST_TOKEN.search(text, self._begin)
        for begin in range(match.start(), match.start() + 1 if match[1] else len(text)) if match else ():
            before = next((stacks for end, stacks in reversed(read) if end <= begin), [])
            for terminal, whole in self._insertions.longer(text[begin:]):
                for stack in self._table.read(before, terminal):
                    yield stack, (whole[len(text) - begin :],)

    def _finished(self, text: bytes, end: int, stacks: list[Stack]) -> Iterator[Start]:
        """The stacks after a text that cannot be read to its end, if its rest begins a terminal."""
        half = text[end:].lstrip()
        for rest, stack in product(RESTS, [*stacks, *self._table.past_hidden(stacks)]) if len(half) < MOST_HALF else ():
            terminal = self._table.token(stack[-1], half + rest)
            if terminal is not None:
                for after in self._table.shift(stack, terminal):
                    yield after, (rest,)

    def _ways(self, starts: tuple[Start, ...]) -> Iterator[tuple[tuple[bytes, ...], int]]:
        """The results of a search; texts that differ only in their names leave the same stacks."""
        self._searched[starts], found = tee(self._searched.get(starts) or self._search(starts))
        return found

    def _search(self, starts: Iterable[Start]) -> Iterator[tuple[tuple[bytes, ...], int]]:
        serial = count()
        waiting: list[tuple[float, int, float, Stack, tuple[bytes, ...]]] = []
        for stack, written in starts:
            cost = COST_WORD if any(written) else 0.0
            heapq.heappush(waiting, (cost + self._distance(stack), next(serial), cost, stack, written))
        seen: set[Stack] = set()
        found = read = 0
        while waiting and len(seen) < MOST_VISITED and found < MOST_FOUND and read < MOST_READ:
            _, _, cost, stack, written = heapq.heappop(waiting)
            if stack in seen:
                continue
            seen.add(stack)
            read -= self._sound.read
            place = self._sound.place(stack)
            read += self._sound.read
            if place is not None:
                found += 1
                yield (*written, *self._sound.line_before(stack, place)), place
                cost += COST_BEYOND
            for text, price, after in self._moves(stack) if len(written) <= MOST_INSERTED else ():
                if after in seen:
                    continue
                spent = cost + price
                entry = (spent + self._distance(after), next(serial), spent, after, (*written, *text))
                heapq.heappush(waiting, entry)

    def _moves(self, stack: Stack) -> Iterator[tuple[tuple[bytes, ...], float, Stack]]:
        """One step of the search: the end of a construct, all openers that the suffix needs, or one terminal."""
        for ending in self._pieces.endings(stack[-1]):
            if reduced := self._table.reduce(stack, ending.reduction):
                yield ending.text, ending.cost, reduced
        for target, lasts in self._lasts:
            since = lasts.get(stack[-1])
            if since and (opening := self._opening(target, since)):
                yield opening, COST_OPENED * len(opening), stack + target[since:]
        for one in self._insertions.at(stack[-1]):  # the reductions before it are endings without text
            for after in self._table.shifted(stack[-1], one.terminal):
                yield (one.text,), one.cost, (*stack, after)

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


def _token_start(tree: Tree, offset: int) -> int:
    """Where the token begins that touches an offset from the left; the offset itself where there is none."""
    leaf = tree.root_node.descendant_for_byte_range(max(offset - 1, 0), offset)
    return leaf.start_byte if leaf is not None and not leaf.child_count else offset


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


def spelled(text: bytes, written: Sequence[bytes]) -> bytes:
    """Return terminals as text: words kept apart, a blank before a block's brace, directives on lines of their own."""
    spelled = b""
    for part in written:
        before = (text + spelled)[-1:]
        apart = WORD.match(before) and WORD.match(part)
        if DIRECTIVE.match(part) and before not in b"\n":
            spelled += b"\n"
        elif apart or (part == b"{" and before not in b" \n("):
            spelled += b" "
        spelled += part
    return spelled
