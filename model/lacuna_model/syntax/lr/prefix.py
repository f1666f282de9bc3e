"""Reads texts that begin alike as the LR parser does, each from where it differs from the one before."""

import re
from typing import NamedTuple

from tree_sitter import Node, Point, Tree

from lacuna_model.core import work
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError, advance
from lacuna_model.syntax.lr.parse_table import START, ParseTable, Stack, Terminal
from lacuna_model.text.diff import num_common

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
        self._reparser = Reparser(language)
        self._read = [Read(0, [START])]

    def read(self, text: bytes) -> list[Read]:
        """Return what was read of a text, up to its end or to what the grammar cannot read.

        Raises UnparsableError where too much is open.
        """
        root, same = self._reparser.parse(text).root_node, self._reparser.same
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
        unsure = leaf.parent is not None and leaf.parent.is_error
        return Terminal(word, (tuple(dict.fromkeys(alike)), *names), on_new_line, unsure)


def _is_inside_leaf(root: Node, offset: int) -> bool:
    """Whether an offset is inside a leaf."""
    node = root.descendant_for_byte_range(max(offset - 1, 0), offset + 1)
    return node is not None and not node.child_count and node.start_byte < offset < node.end_byte


class Reparser:
    """Parses one text after another; ``same`` is how many bytes the last text had in common with the one before."""

    def __init__(self, language: Language) -> None:
        self._parser = language.parser()
        self._text = b""
        self._tree = self._parser.parse(b"")
        self.same = 0

    def parse(self, text: bytes) -> Tree:
        """Return the tree of a text."""
        if text == self._text:
            self.same = len(text)
            return self._tree
        old, self.same = self._text, num_common(self._text, text)
        point = advance(Point(0, 0), text[: self.same])
        ends = advance(point, old[self.same :]), advance(point, text[self.same :])
        edited = self._tree.copy()
        edited.edit(self.same, len(old), len(text), point, *ends)
        self._text, self._tree = text, self._parser.parse(text, edited)
        return self._tree
