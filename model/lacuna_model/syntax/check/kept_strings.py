"""Strings around a gap: a one-line fill has to stay inside, since the closing quote follows the gap."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tree_sitter import Node

from lacuna_model.syntax.check.error_set import Fault, Filled

STRING = re.compile(r"(?!.*(?:content|fragment|start|end|concatenated|interpolation)).*(?:string|quote).*")


class KeptString(NamedTuple):
    """The string around a gap: its kind, and how many bytes it begins before the gap and ends after it."""

    kind: str
    before: int
    after: int


def kept_strings(original: Filled) -> list[KeptString | None]:
    """The innermost string around each gap of a tree without errors; None for a gap in code within a string."""
    root = original.tree.root_node
    return [_around(root, *gap) if not root.has_error else None for gap in original.spans]


def torn(filled: Filled, kept: Sequence[KeptString | None]) -> Iterator[Fault]:
    """Yield a fault for each fill whose string now begins or ends elsewhere."""
    for (start, end), string in zip(filled.spans, kept, strict=True):
        if string is None:
            continue
        begin, stop = start - string.before, end + string.after
        node = filled.tree.root_node.descendant_for_byte_range(begin, stop)
        while node is not None and node.parent is not None and node.type != string.kind:
            node = node.parent
        if node is None or (node.type, node.start_byte, node.end_byte) != (string.kind, begin, stop):
            yield Fault("TORN", start, end)


def _around(root: Node, start: int, end: int) -> KeptString | None:
    node = root.descendant_for_byte_range(start, end)
    while node is not None and node.parent is not None and not STRING.fullmatch(node.type):
        if "interpolation" in node.type or "substitution" in node.type:
            return None
        node = node.parent
    if node is None or node.parent is None or not node.start_byte < start <= end < node.end_byte:
        return None
    return KeptString(node.type, start - node.start_byte, node.end_byte - end)
