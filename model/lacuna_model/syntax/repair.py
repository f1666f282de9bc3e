"""Repair: the terminals that carry an unfinished fill over to the text behind its gap, found in the grammar itself.

A valid fill tells the parser's stack where the text behind the gap begins. The shortest way from the stack behind an
unfinished fill to that one is a search over insertions, as in the error repair of Corchuelo et al. (Repairing syntax
errors in LR parsers, 2002) and of Diekmann and Tratt (Don't Panic!, ECOOP 2020).
"""

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, islice, pairwise

from tree_sitter import Tree

from lacuna_model.syntax.insertions import COST_WORD, MOST_INSERTED, WORD, pieces_of
from lacuna_model.syntax.languages import Language
from lacuna_model.syntax.parse_table import END, ParseTable, Stack, leaves, parse_table

MOST_VISITED = 60
MOST_READ = 250  # terminals behind the gap, in one search
MOST_FOUND = 12
MOST_REUSED = 12  # terminals of the sound fill's end
# How many terminals behind the gap are read until the parser cannot tell the two texts apart.
REACH = 250
LAST_WORD = re.compile(rb"#?\w*\Z")
COST_OPENED = 0.5  # of what is open behind the gap
COST_BEYOND = 1.0  # for going on behind what would do
COST_PER_STATE = 1.0  # for each state on the stack that is not on the one to be reached
COST_PER_LACKING = 0.5  # for each that is only on that one


class Repair:
    """Completions of one gap's fills, given a sound tree of its text with some fill.

    What leads over to the text behind the gap is either written anew or the end of the sound fill.
    """

    def __init__(
        self, language: Language, table: ParseTable, tree: Tree, text: bytes, gap: tuple[int, int], before: list[Stack]
    ) -> None:
        self._table = table
        self._insertions, self._pieces = pieces_of(language, table)
        self._begin, self._end = gap
        self._text = text
        self.before = before
        own = [leaf for leaf in leaves(tree.root_node, self._begin) if leaf.start_byte < self._end][-MOST_REUSED:]
        # Where the ends of the sound fill begin: a comment that it opens is part of each.
        self._ends = [leaf.start_byte for leaf in own] + [_comment_at(tree, self._end)]
        behind = islice(leaves(tree.root_node, self._end), REACH)
        self._terminals = [leaf.grammar_id for leaf in chain(own, behind)]
        # The stacks of the sound tree in front of the first of these and behind each, as far as they were asked for.
        self._goals = [frozenset(table.take(tree, self._ends[0]))]
        self._read = 0
        self._targets = self._goal(0) | self._goal(len(self._ends) - 1)

    def completions(self, tree: Tree, text: bytes) -> Iterator[bytes]:
        """What may end a fill, likeliest first, ``tree`` being that of ``text``, which ends with what is written."""
        seen = set()
        for (word_end, *written), rest in self._search(self._starts(tree, text)):
            completion = word_end + spelled(text + word_end, [*written, self._text[self._ends[rest] : self._end]])
            if (solid := b"".join(completion.split())) not in seen:
                seen.add(solid)
                yield completion

    def _starts(self, tree: Tree, text: bytes) -> Iterator[tuple[Stack, tuple[bytes, ...]]]:
        """The stacks behind a text, and those behind it where its last word is the beginning of a longer one.

        With each what is written first: the end of that word, or nothing.
        """
        match = LAST_WORD.search(text, self._begin)
        word_at = match.start() if match else len(text)
        stacks, before, end = self.before, self.before, len(text[: self._begin].rstrip())
        for leaf in leaves(tree.root_node, self._begin):
            before = stacks if leaf.start_byte <= word_at else before
            on_new_line = b"\n" in text[end : leaf.start_byte]
            stacks, end = self._table.read(stacks, leaf.grammar_id, on_new_line=on_new_line), leaf.end_byte
        yield from ((stack, (b"",)) for stack in stacks)
        for terminal, keyword in self._insertions.longer(text[word_at:]):
            for stack in self._table.read(before, terminal):
                yield stack, (keyword[len(text) - word_at :],)

    def _search(self, starts: Iterable[tuple[Stack, tuple[bytes, ...]]]) -> Iterator[tuple[tuple[bytes, ...], int]]:
        serial = count()
        waiting: list[tuple[float, int, float, Stack, tuple[bytes, ...]]] = []
        for stack, written in starts:
            cost = COST_WORD if any(written) else 0.0
            heapq.heappush(waiting, (cost + self._distance(stack), next(serial), cost, stack, written))
        seen: set[Stack] = set()
        found: set[tuple[bytes, ...]] = set()  # by what they begin with: others are hardly different
        self._read = 0
        while waiting and len(seen) < MOST_VISITED and len(found) < MOST_FOUND and self._read < MOST_READ:
            _, _, cost, stack, written = heapq.heappop(waiting)
            if stack in seen:
                continue
            seen.add(stack)
            rest = self._reached(stack)
            if rest is not None and (begin := tuple(filter(None, written))[:2]) not in found:
                found.add(begin)
                yield written, rest
                cost += COST_BEYOND
            for text, price, after in self._moves(stack) if len(written) <= MOST_INSERTED else ():
                spent = cost + price
                entry = (spent + self._distance(after), next(serial), spent, after, (*written, *text))
                heapq.heappush(waiting, entry)

    def _moves(self, stack: Stack) -> Iterator[tuple[tuple[bytes, ...], float, Stack]]:
        """One step of the search: the end of what is open, all that must be open behind the gap, or one terminal."""
        for ending in self._pieces.endings(stack[-1]):
            if reduced := self._table.reduce(stack, ending.reduction):
                yield ending.text, ending.cost, reduced
        for target in self._targets:
            since = _last(target, stack[-1])
            if since and (opening := self._opening(target, since)):
                yield opening, COST_OPENED * len(opening), stack + target[since:]
        for one in self._insertions.at(stack[-1]):  # what is reduced before is an ending without text
            for after in self._table.shifted(stack[-1], one.terminal):
                yield (one.text,), one.cost, (*stack, after)

    def _opening(self, target: Stack, since: int) -> tuple[bytes, ...] | None:
        """The shortest text that makes the rest of a stack, the first ``since`` states being there."""
        pieces = [self._pieces.between(*pair) for pair in pairwise(target[since - 1 :])]
        return tuple(text for piece in pieces if piece for text in piece) if None not in pieces else None

    def _distance(self, stack: Stack) -> float:
        """About what lies between a stack and one behind the gap, or where the end of the sound fill begins."""
        return min((_apart(stack, target) for target in self._targets), default=0.0)

    def _reached(self, stack: Stack) -> int | None:
        """Which end of the sound fill may follow, the shortest there is: the last is none of it."""
        return next((rest for rest in range(len(self._ends) - 1, -1, -1) if self._reads(stack, rest)), None)

    def _reads(self, stack: Stack, start: int) -> bool:
        """Whether what follows can be read, up to where the parser cannot tell this text from the sound one."""
        if start < len(self._terminals) and not self._table.knows(stack[-1], self._terminals[start]):
            return False
        stacks, place = [stack], start
        while place < len(self._terminals):
            stacks = self._table.read(stacks, self._terminals[place])
            place, self._read = place + 1, self._read + 1
            if not stacks:
                return False
            if place >= len(self._ends):
                goal = self._goal(place)
                if not goal.isdisjoint(stacks):
                    return True
                if len(stacks) == len(goal) == 1:
                    place, stacks = self._ahead(place, stacks[0], *goal)
        if len(self._terminals) < REACH:
            return any(self._table.shift(one, END) for one in stacks)
        # A block may be another one's, with a word more in its head; but what is left open is deeper.
        depths = [len(one) for one in self._goal(len(self._terminals))]
        return not depths or any(len(one) <= max(depths) + 1 for one in stacks)

    def _ahead(self, place: int, stack: Stack, goal: Stack) -> tuple[int, list[Stack]]:
        """The place up to which a stack does as the sound one, since their tops are alike, and the stack there."""
        below = len(goal) - _alike(stack, goal)
        bottom = stack[: len(stack) - (len(goal) - below)]
        while below < len(goal) and place < len(self._terminals):
            after = self._goal(place + 1)
            if len(after) != 1 or (*after,)[0][: below + 1] != goal[: below + 1]:
                break
            place, (goal,) = place + 1, after
        return place, [bottom + goal[below:]]

    def _goal(self, place: int) -> frozenset[Stack]:
        while len(self._goals) <= place:
            terminal = self._terminals[len(self._goals) - 1]
            self._goals.append(frozenset(self._table.read(self._goals[-1], terminal)))
        return self._goals[place]


def repair_for(
    language: Language, tree: Tree, text: bytes, gap: tuple[int, int], known: Repair | None
) -> Repair | None:
    """The repair of a gap, a byte range of a sound tree's text; None where the grammar cannot be read.

    What is ``known`` of the gap by another tree with the same text in front of it need not be found again.
    """
    table = parse_table(language)
    if table is None:
        return None
    before = known.before if known is not None else table.take(tree, gap[0])
    return Repair(language, table, tree, text, gap, before)


def _last(stack: Stack, state: int) -> int:
    """How much of a stack there is up to a state, where it comes last; 0 where it does not."""
    return next((place for place in range(len(stack), 0, -1) if stack[place - 1] == state), 0)


def _alike(one: Stack, other: Stack) -> int:
    """How many states at their tops two stacks have in common."""
    most = min(len(one), len(other))
    return next((place for place in range(most) if one[-1 - place] != other[-1 - place]), most)


def _apart(stack: Stack, target: Stack) -> float:
    """About what it costs to make one stack of another, which have their bottoms in common and maybe their tops."""
    most = min(len(stack), len(target))
    below = next((place for place in range(most) if stack[place] != target[place]), most)
    shared = below + min(_alike(stack, target), most - below)
    return COST_PER_STATE * (len(stack) - shared) + COST_PER_LACKING * (len(target) - shared)


def _comment_at(tree: Tree, offset: int) -> int:
    """Where the comment begins that an offset lies in; the offset itself where there is none."""
    node = tree.root_node.descendant_for_byte_range(max(offset - 1, 0), offset)
    inside = node is not None and node.is_extra and node.start_byte < offset < node.end_byte
    return node.start_byte if node is not None and inside else offset


def spelled(text: bytes, written: Sequence[bytes]) -> bytes:
    """Terminals as text: words apart from words, and a block's brace from what is in front of it."""
    spelled = b""
    for part in written:
        before = (text + spelled)[-1:]
        apart = WORD.match(before) and WORD.match(part)
        spelled += (b" " if apart or (part == b"{" and before not in b" \n(") else b"") + part
    return spelled
