"""Parts of a sound fill of a gap: its end, which may be empty, can follow another beginning."""

from collections.abc import Sequence
from itertools import takewhile

from tree_sitter import Tree

from lacuna_model.languages.language import Language
from lacuna_model.syntax.completion.prefix import Terminals
from lacuna_model.syntax.completion.suffix import Followed, suffix_of
from lacuna_model.syntax.lr.parse_table import ParseTable, Stack, leaves

MAX_REUSED = 12  # terminals
MAX_BEHIND = 120  # terminals of the suffix that are read: where blocks are columns, a longer reading does not end


class KeptParts:
    """The last terminals of a sound fill and the suffix after it, numbered by place; an end is the text from one on."""

    def __init__(
        self,
        language: Language,
        terminals: Terminals,
        tree: Tree,
        text: bytes,
        gap: tuple[int, int],
        table: ParseTable,
        before: list[Stack],
    ) -> None:
        self._table, self._text = table, text
        self._columns = language.columns
        self._openers = (*language.lexicon.line_comment, *(begin for begin, _ in language.lexicon.block_comment))
        begin, self._end = gap
        own = list(takewhile(lambda leaf: leaf.start_byte < self._end, leaves(tree.root_node, begin)))
        goals = sound_stacks(table, frozenset(before), [leaf.grammar_id for leaf in own])
        own = own[-MAX_REUSED:]
        self._terminals = [leaf.grammar_id for leaf in own]
        # Where the ends begin. A comment that the fill opens is part of each; the last end is only this comment.
        self._begins = [leaf.start_byte for leaf in own] + [_comment_at(tree, self._end)]
        self._goals = goals[-len(self._begins) :]
        self._leads = [self._lead(leaf.start_byte) for leaf in own] + [None]
        behind = terminals.behind(text, tree.root_node, self._end, to_the_end=True)
        self._behind = suffix_of(table, behind[:MAX_BEHIND])
        self._followed = Followed(self._behind)
        self._places: dict[int, list[int]] = {}
        self._known_opened: dict[int, set[str]] = {}

    def _lead(self, begin: int) -> bytes | None:
        """The indentation of a terminal that begins a line, where blocks are indented."""
        lead = self._text[self._text.rfind(b"\n", 0, begin) + 1 : begin]
        return lead if self._columns and not lead.strip() else None

    @property
    def targets(self) -> frozenset[Stack]:
        """The stacks before the first terminal that may be used again, and those after the last."""
        return self._goals[0] | self._goals[-1]

    def place(self, stack: Stack) -> int | None:
        """Return the place of the shortest end that may follow a stack; None for none."""
        places = self._places.get(stack[-1])
        if places is None:
            places = self._places[stack[-1]] = self._places_behind(stack[-1])
        opened = self._table.brackets(stack)
        fitting = (one for one in places if opened in (self._opened(one) or (opened,)))
        return next((one for one in fitting if self._reads(stack, one)), None)

    def _opened(self, place: int) -> set[str]:
        """The brackets that may be open before an end, which closes them."""
        if place not in self._known_opened:
            self._known_opened[place] = {self._table.brackets(stack) for stack in self._goals[place]}
        return self._known_opened[place]

    def _places_behind(self, state: int) -> list[int]:
        """The ends whose first terminal may follow a state, shortest first."""
        own = [place for place, one in enumerate(self._terminals) if self._table.knows(state, one)]
        return [len(self._terminals), *reversed(own)]

    def _reads(self, stack: Stack, place: int) -> bool:
        """Whether an end and the suffix can be read after a stack."""
        stacks = [stack]
        ends = zip(self._goals[place:], self._terminals[place:], self._leads[place:], strict=False)
        for goal, terminal, lead in ends:
            if not goal.isdisjoint(stacks):
                return True
            stacks = self._table.read(stacks, terminal, on_new_line=lead is not None)
        return any(self._followed.has(one) for one in stacks)

    def end(self, place: int) -> bytes:
        """Return an end as text; of a comment that it opens, only the mark."""
        comment = self._begins[-1]
        opened = self._text[comment : self._end]
        mark = next((mark for mark in self._openers if opened.startswith(mark)), opened)
        return self._text[self._begins[place] : comment] + mark

    def line_before(self, stack: Stack, place: int) -> tuple[bytes, ...]:
        """Return the line end to write between a stack and an end, where one has to be read there.

        Where blocks are indented, it is written if the sound fill has one there, so that the block stays the same.
        """
        if self._columns:
            lead = self._leads[place]
            return () if lead is None else (b"\n" + lead,)
        if place == len(self._terminals):
            due = self._text[self._end :][:1].isspace() or self._behind.follows_at_once(stack)
        else:
            due = bool(self._table.shift(stack, self._terminals[place]))
        return () if due else (b"\n",)


def sound_stacks(table: ParseTable, before: frozenset[Stack], terminals: Sequence[int]) -> list[frozenset[Stack]]:
    """Return the stacks before each of some terminals and after the last, without those that lead nowhere."""
    found = [before]
    for terminal in terminals:
        found.append(frozenset(table.read(found[-1], terminal)))
    for place in range(len(terminals) - 1, -1, -1):
        if len(found[place]) > 1 and (after := found[place + 1]):
            ways = (one for one in found[place] if not after.isdisjoint(table.read([one], terminals[place])))
            found[place] = frozenset(ways) or found[place]
    return found


def _comment_at(tree: Tree, offset: int) -> int:
    """Where the comment around an offset begins; the offset itself where there is none."""
    node = tree.root_node.descendant_for_byte_range(max(offset - 1, 0), offset)
    inside = node is not None and node.is_extra and node.start_byte < offset < node.end_byte
    return node.start_byte if node is not None and inside else offset
