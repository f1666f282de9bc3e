"""The syntax errors of a tree, and the mapping of the original's errors to the filled text."""

import re
from collections.abc import Iterable, Sequence
from itertools import count
from typing import NamedTuple

from tree_sitter import Node, Tree

from lacuna_model.core import work

_ODD = re.compile(rb"[\x7f-\xff]")
_WORD = re.compile(rb"[\w$]*[\x7f-\xff][\w$\x7f-\xff]*")


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


def identifier_faults(filled: FilledTree) -> frozenset[Fault]:
    """Return the names in fills with characters that are not allowed in names.

    Many grammars accept every character beyond ASCII.
    """
    found, (tree, text, spans) = set(), filled
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
