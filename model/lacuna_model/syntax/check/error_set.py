"""The set of syntax errors of a tree, and how the errors of the original file carry over to a filled one."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tree_sitter import Node, Tree

_ODD = re.compile(rb"[\x7f-\xff]")
_WORD = re.compile(rb"[\w$]*[\x7f-\xff][\w$\x7f-\xff]*")


class Fault(NamedTuple):
    """One syntax error: what it is (``ERROR``, ``MISSING ;``, ``INDENT``) and the bytes it covers."""

    kind: str
    start: int
    end: int


class Splice(NamedTuple):
    """The bytes ``start``..``end`` of the original, replaced by ``length`` new bytes."""

    start: int
    end: int
    length: int


def tree_faults(tree: Tree) -> frozenset[Fault]:
    """Every ERROR and MISSING node; subtrees that tree-sitter marks as free of errors are not walked.

    A token that has no node, as the line's end of an ``#include``, may be missing too: then a node has an error, and
    none of those in it does.
    """
    if not tree.root_node.has_error:
        return frozenset()
    found: list[Fault] = []
    before: list[int] = []  # how many were found in front of each node that is walked
    cursor = tree.walk()
    descend = True
    while True:
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
            return frozenset(found)


def _own_fault(node: Node) -> Fault | None:
    if node.is_missing:
        return Fault(f"MISSING {node.type}", node.start_byte, node.end_byte)
    if node.is_error:
        return Fault("ERROR", node.start_byte, node.end_byte)
    return None


def identifier_faults(tree: Tree, text: bytes, spans: Iterable[tuple[int, int]]) -> frozenset[Fault]:
    """Names in the given ranges that hold characters no name may hold; many a grammar takes all beyond ASCII's."""
    found = set()
    for begin, stop in spans:
        if _ODD.search(text, begin, stop) is None:
            continue
        for match in _WORD.finditer(text, begin, stop):
            node = tree.root_node.descendant_for_byte_range(*match.span())
            if node is not None and node.child_count == 0 and node.type.endswith("identifier"):
                name = text[node.start_byte : node.end_byte].decode(errors="replace")
                if not re.sub(r"[$@#]", "_", name).isidentifier():
                    found.add(Fault("ERROR", node.start_byte, node.end_byte))
    return frozenset(found)


def carried_over(faults: Iterable[Fault], splices: Sequence[Splice]) -> frozenset[Fault]:
    """The faults of the original in the coordinates of the filled text.

    A fault that begins or ends inside replaced bytes is gone with them. At the border of a gap a position has two
    images, before the fill and behind it, and both count: which one the parser picks depends on the fill.
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
