"""Parts of a sound fill of a gap: its end, which may be empty, can follow another beginning."""

from itertools import islice, takewhile

from tree_sitter import Tree

from lacuna_model.languages.language import Language
from lacuna_model.syntax.completion.suffix_stacks import REACH, SuffixStacks, sound_stacks
from lacuna_model.syntax.lr.parse_table import ParseTable, Stack, leaves

MOST_REUSED = 12  # terminals


class KeptParts:
    """The last terminals of a sound fill and the suffix after it, numbered by place.

    An end is the text from a place on. ``known`` keeps, by the stacks before the suffix, what other fills with the same
    surrounding text found out about the suffix; it is added to.
    """

    def __init__(
        self,
        language: Language,
        table: ParseTable,
        tree: Tree,
        text: bytes,
        gap: tuple[int, int],
        before: list[Stack],
        known: dict[frozenset[Stack], SuffixStacks],
    ) -> None:
        self._table, self._text = table, text
        self._columns = language.columns
        self._openers = (*language.lexicon.line_comment, *(begin for begin, _ in language.lexicon.block_comment))
        begin, self._end = gap
        own = list(takewhile(lambda leaf: leaf.start_byte < self._end, leaves(tree.root_node, begin)))
        goals = sound_stacks(table, frozenset(before), [leaf.grammar_id for leaf in own])
        own = own[-MOST_REUSED:]
        self._terminals = [leaf.grammar_id for leaf in own]
        # Where the ends begin. A comment that the fill opens is part of each; the last end is only this comment.
        self._begins = [leaf.start_byte for leaf in own] + [_comment_at(tree, self._end)]
        self._goals = goals[-len(self._begins) :]
        self._leads = [self._lead(leaf.start_byte) for leaf in own] + [None]
        goal = self._goals[-1]
        if goal not in known:
            known[goal] = SuffixStacks(table, self._read_behind(tree), goal)
        self._behind = known[goal]
        self._places: dict[int, list[int]] = {}
        self._known_opened: dict[int, set[str]] = {}

    def _read_behind(self, tree: Tree) -> list[int]:
        return [leaf.grammar_id for leaf in islice(leaves(tree.root_node, self._end), REACH)]

    def _lead(self, begin: int) -> bytes | None:
        """The indentation of a terminal that begins a line, where blocks are indented."""
        lead = self._text[self._text.rfind(b"\n", 0, begin) + 1 : begin]
        return lead if self._columns and not lead.strip() else None

    @property
    def targets(self) -> frozenset[Stack]:
        """The stacks before the first terminal that may be used again, and those after the last."""
        return self._goals[0] | self._goals[-1]

    @property
    def read(self) -> int:
        """How many terminals of the suffix were read in all."""
        return self._behind.read

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
        return [*([len(self._terminals)] if self._behind.begins(state) else []), *reversed(own)]

    def _reads(self, stack: Stack, place: int) -> bool:
        """Whether an end and the suffix can be read after a stack."""
        stacks = [stack]
        ends = zip(self._goals[place:], self._terminals[place:], self._leads[place:], strict=False)
        for goal, terminal, lead in ends:
            if not goal.isdisjoint(stacks):
                return True
            stacks = self._table.read(stacks, terminal, on_new_line=lead is not None)
        return any(self._behind.accepts(one) for one in stacks)

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
        terminals = [*self._terminals[place:], *self._behind.terminals[:1]]
        blank = place == len(self._terminals) and self._text[self._end :][:1].isspace()
        return () if blank or not terminals or self._table.shift(stack, terminals[0]) else (b"\n",)


def _comment_at(tree: Tree, offset: int) -> int:
    """Where the comment around an offset begins; the offset itself where there is none."""
    node = tree.root_node.descendant_for_byte_range(max(offset - 1, 0), offset)
    inside = node is not None and node.is_extra and node.start_byte < offset < node.end_byte
    return node.start_byte if node is not None and inside else offset
