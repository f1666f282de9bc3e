"""Whether a node may stand where it does, by what it is and what is around it."""

import re
from collections.abc import Callable

from tree_sitter import Node

Fits = Callable[[Node], bool]


def never(_node: Node) -> bool:
    """Nothing may stand there."""
    return False


def one_of(kinds: str) -> Fits:
    """Only nodes of these kinds and comments may stand there."""
    allowed = frozenset(f"{kinds} comment line_comment block_comment".split())
    return lambda node: node.type in allowed


def none_of(kinds: frozenset[str]) -> Fits:
    """Nodes of all other kinds may stand there."""
    return lambda node: node.type not in kinds


def said(pattern: bytes) -> Fits:
    """Only nodes with this text may stand there."""
    return lambda node: re.fullmatch(pattern, node.text or b"") is not None


def inside(homes: frozenset[str], walls: frozenset[str] = frozenset()) -> Fits:
    """Only a node with one of ``homes`` around it, and none of ``walls`` in between."""

    def fits(node: Node) -> bool:
        around = node.parent
        while around is not None and around.type not in walls:
            if around.type in homes:
                return True
            around = around.parent
        return False

    return fits


def jump(homes: frozenset[str], walls: frozenset[str]) -> Fits:
    """The same for a ``break`` or ``continue``; one with a label or a value is not looked into."""
    around = inside(homes, walls)
    return lambda node: node.named_child_count > 0 or around(node)


def macro(node: Node) -> bool:
    """What a macro may stand for: a word, a call of one, what goes on with such a call; and assembly, as it may."""
    if node.type in ("identifier", "gnu_asm_expression"):
        return True
    while node.child_count:
        head = node.children[0]
        if head.type == "identifier":
            return node.type == "call_expression"
        node = head
    return False


def constructor(name: Node) -> bool:
    """The name of a constructor: that of its class, unless all of them agree that it is the class that is misnamed."""
    itself = name.parent
    body = itself and itself.parent
    owner = body and body.parent
    if itself is None or body is None or owner is None:
        return False
    if body.type == "enum_body_declarations":
        owner = owner.parent or owner
    own = owner.child_by_field_name("name")
    if own is not None and own.text == name.text:
        return True
    names = [member.child_by_field_name("name") for member in body.children if member.type == itself.type]
    return all(other is None or other.text == name.text for other in names)
