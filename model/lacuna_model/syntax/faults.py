"""The errors of a tree and of the indentation of a Python text; those of a text with gaps, and which of them may stay.

The grammar does not check three rules of indentation: the statements of a block share one column, that column is
deeper than the block's header, and a block is not empty. A tab reaches to the next multiple of eight.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import NamedTuple

from tree_sitter import Node, Tree

from lacuna_model.core import work
from lacuna_model.languages.language import Language, kinds
from lacuna_model.syntax.sides import scan_left
from lacuna_model.text.lines import indentation, splice


class Fault(NamedTuple):
    """One syntax error: its kind (``ERROR``, ``MISSING ;``, ``INDENT``) and the bytes it covers."""

    kind: str
    start: int
    end: int


class Splice(NamedTuple):
    """The bytes ``start``..``end`` of the original, replaced by ``length`` new bytes."""

    start: int
    end: int
    length: int


class FilledTree(NamedTuple):
    """The tree and the text of a document, and the byte ranges of its fills, or of its gaps."""

    tree: Tree
    text: bytes
    spans: Sequence[tuple[int, int]]


def tree_faults(tree: Tree) -> frozenset[Fault]:
    """Return every ERROR and MISSING node; subtrees that tree-sitter marks as free of errors are skipped.

    A missing token may have no node, for example the newline of an ``#include``. Then a node has an error but none of
    its children does, and the fault is at the node's end.
    """
    found, waiting = set[Fault](), [tree.root_node] if tree.root_node.has_error else []
    while waiting:
        work.check()
        node = waiting.pop()
        broken = [child for child in node.children if child.has_error or child.is_error]
        if node.is_missing or node.is_error:
            found.add(Fault(f"MISSING {node.type}" if node.is_missing else "ERROR", node.start_byte, node.end_byte))
        elif not broken:
            found.add(Fault("ERROR", node.end_byte, node.end_byte))
        waiting += broken
    return frozenset(found)


def carried_over(faults: Iterable[Fault], splices: Sequence[Splice]) -> frozenset[Fault]:
    """Map the faults of the original to the coordinates of the filled text.

    A fault that begins or ends inside replaced bytes is dropped. A position at the border of a gap has two images,
    before and after the fill. Both count, since the fill decides which one the parser picks.
    """
    return frozenset(
        Fault(fault.kind, start, end)
        for fault in faults
        for start, end in product(_images(fault.start, splices), _images(fault.end, splices))
        if start <= end
    )


def _images(position: int, splices: Sequence[Splice]) -> list[int]:
    shift, images = 0, list[int]()
    for start, end, length in splices:
        if position < start:
            break
        if position == start:
            images.append(position + shift)
        if start < position < end:
            return []
        shift += length - (end - start)
        if position == end:
            images.append(position + shift)
    return images or [position + shift]


CLAUSES = kinds("elif_clause else_clause except_clause except_group_clause finally_clause")
# Nodes that may hold a block; no other node of a complete tree does.
HOLDERS = CLAUSES | kinds(
    "block case_clause class_definition decorated_definition for_statement function_definition if_statement "
    "match_statement try_statement while_statement with_statement ERROR"
)


def indentation_faults(tree: Tree, text: bytes, spans: Sequence[tuple[int, int]] | None = None) -> frozenset[Fault]:
    """Return the indentation errors of a Python tree near the byte ranges ``spans``, or everywhere without them."""
    found: set[Fault] = set()
    for start, end in united(spans) if spans is not None else [(0, len(text))]:
        stack = [tree.root_node]
        while stack:
            work.check()
            node = stack.pop()
            children = list(_children_in(node, start, end))
            if node.type in ("block", "module"):
                found.update(_block_faults(node, children, text))
            elif clauses := [child for child in children if child.type in CLAUSES]:
                found.update(_misplaced(clauses, _line_column(node.start_byte, text), text))
            stack.extend(child for child in children if child.type in HOLDERS)
    return frozenset(found)


def all_faults(tree: Tree, text: bytes, language: Language) -> frozenset[Fault]:
    """Return the errors of a tree, and those of its text's indentation where blocks are columns."""
    indented = indentation_faults(tree, text) if language.lexicon.columns else frozenset[Fault]()
    return tree_faults(tree) | indented


def united(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges with overlapping and adjacent ones united, since each range costs a walk from the root."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _children_in(node: Node, start: int, end: int) -> Iterator[Node]:
    """The children of a node that touch a byte range, and the next one after them."""
    cursor = node.walk()
    if cursor.goto_first_child_for_byte(max(start - 1, 0)) is None:
        if node.end_byte >= start and cursor.goto_last_child() and cursor.node is not None:
            yield cursor.node
        return
    while True:
        child = cursor.node
        assert child is not None
        yield child
        if child.start_byte > end or not cursor.goto_next_sibling():
            return


def _block_faults(block: Node, children: Sequence[Node], text: bytes) -> Iterator[Fault]:
    if block.type == "block" and all(child.is_extra for child in block.named_children):
        yield Fault("INDENT", block.start_byte, block.end_byte)
        return
    column = 0 if block.type == "module" else _column(block.start_byte, text)
    if column is None:  # the block follows its header on the same line, and holds simple statements only
        for child in children:
            if child.type.endswith("_statement") and any(one.type == "block" for one in child.children):
                yield Fault("INDENT", child.start_byte, child.start_byte)
        return
    header = block.parent
    if header is not None and block.type == "block" and column <= _line_column(header.start_byte, text):
        yield Fault("INDENT", block.start_byte, block.start_byte)
    statements = (child for child in children if child.is_named and not child.is_extra and not child.is_error)
    yield from _misplaced(statements, column, text)


def _misplaced(nodes: Iterable[Node], column: int, text: bytes) -> Iterator[Fault]:
    """A fault for each node that begins its line in another column."""
    for node in nodes:
        if _column(node.start_byte, text) not in (None, column):
            yield Fault("INDENT", node.start_byte, node.start_byte)


def _column(offset: int, text: bytes) -> int | None:
    """The column of the code at an offset, None unless it is the first on its line."""
    lead = text[text.rfind(b"\n", 0, offset) + 1 : offset]
    return _measure(lead) if not lead.strip(b" \t\f\r\xef\xbb\xbf") else None


def _line_column(offset: int, text: bytes) -> int:
    """The column of the first code on the line that holds an offset."""
    line = text[text.rfind(b"\n", 0, offset) + 1 : offset]
    return _measure(indentation(line, b" \t\f\r"))


def _measure(lead: bytes) -> int:
    blank = lead.removeprefix(b"\xef\xbb\xbf")
    return len(blank[blank.rfind(b"\f") + 1 :].replace(b"\r", b"").expandtabs())


MARKS = re.compile(rb"[\s\"'`>/*?)\]}-]*")
NEAR_LINES = 2  # above and below a gap, that its fill may have to mend
HALVES = (b"}", b")", b"]")


class Original:
    """The faults of a text with gaps (ordered, disjoint byte ranges).

    What is wrong whatever the gaps hold is wrong without their lines, too.
    """

    def __init__(self, text: bytes, gaps: Sequence[tuple[int, int]], language: Language) -> None:
        self._text, self._gaps, self._language = text, gaps, language
        self._lines = list(dict.fromkeys(lines_of(text, *gap) for gap in gaps))

    @cached_property
    def _parsed(self) -> tuple[Tree | None, int]:
        return self._language.parser().counted(self._text, None, math.inf)

    @property
    def reports(self) -> int:
        """How many reports of progress its parse gave."""
        return self._parsed[1]

    @property
    def unfilled(self) -> FilledTree:
        """The text as it is, with the ranges of its gaps."""
        assert self._parsed[0] is not None
        return FilledTree(self._parsed[0], self._text, self._gaps)

    @cached_property
    def without_lines(self) -> FilledTree:
        """The text without the gaps' lines, with the places where they were."""
        text = splice(self._text, [(*line, b"") for line in self._lines])
        places = [(cut.start, cut.start) for cut in self.lines_put_back]
        return FilledTree(self._language.parser().parse(text), text, places)

    @property
    def lines_put_back(self) -> list[Splice]:
        """The changes of the text without the gaps' lines that put these lines back."""
        removed, found = 0, list[Splice]()
        for begin, stop in self._lines:
            found.append(Splice(begin - removed, begin - removed, stop - begin))
            removed += stop - begin
        return found

    @cached_property
    def lasting(self) -> frozenset[Fault]:
        """The faults that the text has without the gaps' lines, too, and that end nothing that a gap may begin.

        And that it has where the comments and strings around the gaps are ended there.
        """
        here = all_faults(self.unfilled.tree, self._text, self._language)
        cuts = [Splice(*line, 0) for line in self._lines]
        there = all_faults(*self.without_lines[:2], self._language)
        found = {fault for fault in here if carried_over({fault}, cuts) & there and not self._ends_something(fault)}
        ends = [scan_left(self._text[:start], self._language.lexicon).inside.strip() for start, _ in self._gaps]
        if any(ends):
            edits = [(end, end, inside) for (_, end), inside in zip(self._gaps, ends, strict=True)]
            text, cuts = splice(self._text, edits), [Splice(end, end, len(inside)) for end, _, inside in edits]
            there = all_faults(self._language.parser().parse(text), text, self._language)
            found = {fault for fault in found if carried_over({fault}, cuts) & there}
        return frozenset(found)

    @cached_property
    def apart(self) -> frozenset[Fault]:
        """Those that are not near a gap: there a fill may have to mend them."""
        near = [_with_neighbours(self._text, *line) for line in self._lines]
        return frozenset(
            one for one in self.lasting if all(one.end < begin or stop < one.start for begin, stop in near)
        )

    def _ends_something(self, fault: Fault) -> bool:
        """Whether it is a half, or begins with the end of what a gap may begin: of a bracket, a tag or a block.

        Or it is the end of a string or a comment.
        """
        lexicon, there = self._language.lexicon, self._text[fault.start : fault.end]
        if fault.kind == "INDENT":
            return False
        if fault.kind.startswith("MISSING") or there.startswith(HALVES) or (lexicon.tags and there.startswith(b"</")):
            return True
        return MARKS.fullmatch(there) is not None or there in [closer for _, closer, _ in lexicon.blocks]


def lines_of(text: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the byte range of a range's lines, without the newline of the last."""
    stop = text.find(b"\n", end)
    return text.rfind(b"\n", 0, start) + 1, len(text) if stop < 0 else stop


def _with_neighbours(text: bytes, begin: int, stop: int) -> tuple[int, int]:
    """The byte range of some lines with the nearest lines above and below that are not blank."""
    for _ in range(NEAR_LINES):
        begin, stop = lines_of(text, len(text[:begin].rstrip()), len(text) - len(text[stop:].lstrip()))
    return begin, stop
