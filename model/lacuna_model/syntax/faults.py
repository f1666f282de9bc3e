"""The errors of a tree and of the indentation of a Python text, and where the original's errors are in a filled text.

The grammar does not check three rules of indentation: the statements of a block share one column, that column is
deeper than the block's header, and a block is not empty. Columns follow the CPython tokenizer: a tab reaches to the
next multiple of eight, and the order of two lines must not depend on that width.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from tree_sitter import Node, Tree

from lacuna_model.core import work
from lacuna_model.languages.language import Language, kinds
from lacuna_model.text.lines import indentation


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
    if not tree.root_node.has_error:
        return frozenset()
    found: list[Fault] = []
    before: list[int] = []  # how many were found before each node on the current path
    cursor = tree.walk()
    descend = True
    for _ in work.checked(count()):
        node = cursor.node
        assert node is not None
        if descend:
            before.append(len(found))
            fault = _own_fault(node)
            if fault is not None:
                found.append(fault)
            if node.has_error and cursor.goto_first_child():
                continue
        if before.pop() == len(found) and node.has_error:
            found.append(Fault("ERROR", node.end_byte, node.end_byte))
        if cursor.goto_next_sibling():
            descend = True
        elif cursor.goto_parent():
            descend = False
        else:
            break
    return frozenset(found)


def _own_fault(node: Node) -> Fault | None:
    if node.is_missing:
        return Fault(f"MISSING {node.type}", node.start_byte, node.end_byte)
    if node.is_error:
        return Fault("ERROR", node.start_byte, node.end_byte)
    return None


def carried_over(faults: Iterable[Fault], splices: Sequence[Splice]) -> frozenset[Fault]:
    """Map the faults of the original to the coordinates of the filled text.

    A fault that begins or ends inside replaced bytes is dropped. A position at the border of a gap has two images,
    before and after the fill. Both count, since the fill decides which one the parser picks.
    """
    moved: set[Fault] = set()
    for fault in faults:
        for start in _images(fault.start, splices):
            for end in _images(fault.end, splices):
                if start <= end:
                    moved.add(Fault(fault.kind, start, end))
    return frozenset(moved)


def _images(position: int, splices: Sequence[Splice]) -> list[int]:
    shift = 0
    images: list[int] = []
    for splice in splices:
        if position < splice.start:
            break
        if position == splice.start:
            images.append(position + shift)
        if splice.start < position < splice.end:
            return []
        shift += splice.length - (splice.end - splice.start)
        if position == splice.end:
            images.append(position + shift)
    else:
        return images or [position + shift]
    return images or [position + shift]


TAB_WIDTH = 8
CLAUSES = kinds("elif_clause else_clause except_clause except_group_clause finally_clause")
# Nodes that may hold a block; no other node of a complete tree does.
HOLDERS = CLAUSES | kinds(
    "block case_clause class_definition decorated_definition for_statement function_definition if_statement "
    "match_statement try_statement while_statement with_statement ERROR"
)


class Column(NamedTuple):
    """The column of a line's first character with tabs of eight and with tabs of one."""

    wide: int
    narrow: int

    def deeper(self, other: "Column") -> bool:
        """Whether this column is to the right of the other, whatever the width of a tab."""
        return self.wide > other.wide and self.narrow > other.narrow


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
            elif any(child.type in CLAUSES for child in children):
                found.update(_clause_faults(node, children, text))
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
    column = Column(0, 0) if block.type == "module" else _column(block.start_byte, text)
    if column is None:  # the block follows its header on the same line
        yield from _inline_faults(children)
        return
    header = block.parent
    if header is not None and block.type == "block":
        floor = _line_column(header.start_byte, text)
        if not column.deeper(floor):
            yield Fault("INDENT", block.start_byte, block.start_byte)
    for child in children:
        own = _column(child.start_byte, text) if _is_statement(child) else None
        if own is not None and own != column:
            yield Fault("INDENT", child.start_byte, child.start_byte)


def _inline_faults(children: Sequence[Node]) -> Iterator[Fault]:
    """A body on its header's line holds simple statements only."""
    for child in children:
        if child.type.endswith("_statement") and any(grandchild.type == "block" for grandchild in child.children):
            yield Fault("INDENT", child.start_byte, child.start_byte)


def _clause_faults(statement: Node, children: Sequence[Node], text: bytes) -> Iterator[Fault]:
    column = _line_column(statement.start_byte, text)
    for child in children:
        own = _column(child.start_byte, text) if child.type in CLAUSES else None
        if own is not None and own != column:
            yield Fault("INDENT", child.start_byte, child.start_byte)


def _is_statement(node: Node) -> bool:
    return node.is_named and not node.is_extra and not node.is_error


def _column(offset: int, text: bytes) -> Column | None:
    """The column of the code at an offset, None unless it is the first on its line."""
    lead = text[text.rfind(b"\n", 0, offset) + 1 : offset]
    return _measure(lead) if not lead.strip(b" \t\f\r\xef\xbb\xbf") else None


def _line_column(offset: int, text: bytes) -> Column:
    """The column of the first code on the line that holds an offset."""
    line = text[text.rfind(b"\n", 0, offset) + 1 : offset]
    return _measure(indentation(line, b" \t\f\r"))


def _measure(lead: bytes) -> Column:
    blank = lead.removeprefix(b"\xef\xbb\xbf")
    blank = blank[blank.rfind(b"\f") + 1 :].replace(b"\r", b"")
    return Column(len(blank.expandtabs(TAB_WIDTH)), len(blank))
