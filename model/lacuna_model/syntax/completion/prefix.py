"""Reads texts that end in a gap as the LR parser does, and the texts around a gap as terminals."""

import re
from typing import NamedTuple

from tree_sitter import Node, Tree

from lacuna_model.core import work
from lacuna_model.languages.language import Language
from lacuna_model.syntax.completion.suffix import REACH
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.lr.insertions import WORD
from lacuna_model.syntax.lr.parse_table import END, START, ParseTable, Stack, Terminal, leaves
from lacuna_model.syntax.lr.piece_cache import pieces_of
from lacuna_model.syntax.lr.reparse import Reparser

NODE_NS = 8_000  # of work, for each node that is read
NEAR = 8_000  # bytes before the end of a text; further away whole subtrees are read at once
# Characters that continue the line above, even where a line end may be a semicolon.
CONTINUING = b",.:;*%><=[(?^|&/"
ENDING = b"}"  # a statement may end before it without a semicolon
TAKEN_APART = re.compile(rb"=>|->|\$\w+")  # into several leaves, where error recovery reads the text around


class Read(NamedTuple):
    """The end of a terminal, or of a subtree, that was read, and the stacks there: none if it cannot follow."""

    end: int
    stacks: list[Stack]


class Terminals:
    """Turns the leaves of trees into terminals; those of ``sound`` trees are what they are named."""

    def __init__(self, language: Language, table: ParseTable, *, sound: bool) -> None:
        self._sound = sound
        self._spellings = pieces_of(language, table)[0].spellings
        name = language.grammar().id_for_node_kind("identifier", True)
        self._names = ((name,),) if name is not None else ()

    def of(self, text: bytes, leaf: Node, *, on_new_line: bool) -> Terminal:
        """Return a leaf of a text as the terminals that it may be: error recovery may have named it wrongly."""
        word = text[leaf.start_byte : leaf.end_byte]
        if self._sound:
            return Terminal(word, ((leaf.grammar_id,),), on_new_line)
        alike = self._spellings.get(word, ())
        names = self._names if WORD.match(word) else ()
        unsure = leaf.parent is not None and leaf.parent.is_error
        return Terminal(word, (tuple(dict.fromkeys((*alike, leaf.grammar_id))), *names), on_new_line, unsure)

    def behind(self, text: bytes, root: Node, begin: int, *, to_the_end: bool) -> tuple[Terminal, ...]:
        """Return the terminals of a text from an offset on, as far as the reach; ``to_the_end`` adds its end."""
        found, end = list[Terminal](), begin
        for leaf in leaves(root, begin):
            word = found[-1].word + text[end : leaf.end_byte] if found and leaf.start_byte == end else b""
            if not self._sound and TAKEN_APART.fullmatch(word):
                found[-1] = Terminal(word, (tuple(self._spellings.get(word, ())),), found[-1].on_new_line)
            elif not _is_comment(leaf):
                first = text[leaf.start_byte]
                on_new_line = first in ENDING or (b"\n" in text[end : leaf.start_byte] and first not in CONTINUING)
                found.append(self.of(text, leaf, on_new_line=on_new_line))
            if len(found) == REACH:
                return tuple(found)
            end = leaf.end_byte
        return (*found, Terminal(b"", ((END,),), on_new_line=True)) if to_the_end else tuple(found)


class Prefix:
    """Reads texts that begin alike, each from where it differs from the one before; ``sound`` ones by their trees."""

    def __init__(
        self, language: Language, table: ParseTable, clock: Clock | None = None, *, sound: bool = False
    ) -> None:
        self.table = table
        self._clock = clock
        self.terminals = Terminals(language, table, sound=sound)
        self._reparser = Reparser(language)
        self._read = [Read(0, [START])]

    def start(self, text: bytes, tree: Tree, stop: int) -> list[Stack]:
        """Read a text with a sound tree up to an offset; further texts begin with the same ``stop`` bytes."""
        self._reparser = self._reparser.seeded(text, tree)
        self._go_on(text, tree.root_node, stop, _last_leaf(tree.root_node, stop))
        return self._read[-1].stacks

    def read(self, text: bytes) -> list[Read]:
        """Return what was read of a text, up to its end or to what the grammar cannot read.

        Return nothing if the call is over first.
        """
        root, same = self._reparser.parse(text).root_node, self._reparser.same
        while len(self._read) > 1 and (self._read[-1].end >= same or _is_inside_leaf(root, self._read[-1].end)):
            self._read.pop()
        return self._read if self._go_on(text, root, len(text), len(text) - NEAR) else []

    def stacks(self, text: bytes) -> list[Stack]:
        """Return the stacks after a text; empty if the grammar cannot read it, or the call is over first."""
        read = self.read(text)
        return read[-1].stacks if read else []

    def _go_on(self, text: bytes, root: Node, stop: int, far: int) -> bool:
        """Read the nodes that end before ``stop``, those up to ``far`` as a whole; False if the call is over first."""
        begin, waiting = self._read[-1].end, [root]
        while waiting and (stacks := self._read[-1].stacks):
            node = waiting.pop()
            if node.end_byte <= begin or node.start_byte >= stop or (node.is_extra and not node.is_error):
                continue
            is_far = begin <= node.start_byte and node.end_byte <= far and not node.has_error
            if self._clock is not None and (is_far or not node.child_count) and self._clock.over:
                return False  # a later reading continues from here
            if not node.child_count:
                if begin <= node.start_byte < node.end_byte <= stop:
                    work.spend(NODE_NS)
                    on_new_line = b"\n" in text[self._read[-1].end : node.start_byte]
                    terminal = self.terminals.of(text, node, on_new_line=on_new_line)
                    self._read.append(Read(node.end_byte, self.table.read_any(stacks, terminal)))
            elif is_far and (taken := self.table.take_whole(stacks, node)):
                work.spend(NODE_NS)
                self._read.append(Read(node.end_byte, taken))
            else:
                waiting += reversed(node.children)
        return True


def _last_leaf(root: Node, stop: int) -> int:
    """Where the last leaf before an offset begins: the nodes that end with it may go on after the offset."""
    node = root
    while node.child_count:
        inside = [one for one in node.children if one.start_byte < stop and not one.is_extra]
        filled = [one for one in inside if one.start_byte < one.end_byte]
        if not filled:
            break
        node = filled[-1]
    return node.start_byte


def _is_inside_leaf(root: Node, offset: int) -> bool:
    """Whether an offset is inside a leaf."""
    node = root.descendant_for_byte_range(max(offset - 1, 0), offset + 1)
    return node is not None and not node.child_count and node.start_byte < offset < node.end_byte


def _is_comment(leaf: Node) -> bool:
    return leaf.parent is not None and "comment" in leaf.parent.type


def token_start(tree: Tree, offset: int) -> int:
    """Where the token begins that touches an offset from the left; the offset itself where there is none."""
    leaf = tree.root_node.descendant_for_byte_range(max(offset - 1, 0), offset)
    return leaf.start_byte if leaf is not None and not leaf.child_count else offset
