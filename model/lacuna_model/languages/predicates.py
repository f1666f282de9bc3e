"""Predicates of nodes: whether a node is allowed where it is, by its kind and by the nodes around it."""

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from lacuna_model.core import work

Predicate = Callable[[Node], bool]
COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
FUNCTION = re.compile(r"(?:generator_)?function_|arrow_function|method_definition")
LOOPS = frozenset({"for_statement", "while_statement", "do_statement"})
MODULE_PARTS = frozenset({"import_statement", "export_statement"})


def _around(node: Node, walls: frozenset[str] = frozenset()) -> Iterator[Node]:
    """The nodes around a node, innermost first, up to the first of ``walls``."""
    around = node.parent
    while around is not None and around.type not in walls:
        yield around
        work.check()  # a parent is looked for from the root
        around = around.parent


def before_comments(node: Node) -> Node | None:
    """The last named sibling before a node that is no comment."""
    before = node.prev_named_sibling
    while before is not None and before.type in COMMENTS:
        before = before.prev_named_sibling
    return before


def never(_node: Node) -> bool:
    """Allow no node."""
    return False


def one_of(kinds: str) -> Predicate:
    """Allow only nodes of these kinds, and comments."""
    allowed = COMMENTS.union(kinds.split())
    return lambda node: node.type in allowed


def text_matches(pattern: bytes) -> Predicate:
    """Allow only nodes whose whole text matches."""
    return lambda node: re.fullmatch(pattern, node.text or b"") is not None


# Allows no line end between a string's quotes, where the grammars read it as a blank.
ONE_LINE = text_matches(rb"(?s)(?:[^\n\\]|\\\r?.)*")


def inside(homes: frozenset[str], walls: frozenset[str] = frozenset()) -> Predicate:
    """Allow a node only inside one of ``homes``, with none of ``walls`` in between."""

    return lambda node: any(one.type in homes for one in _around(node, walls))


def jump(homes: frozenset[str], walls: frozenset[str]) -> Predicate:
    """Allow a ``break`` or ``continue`` only inside one of ``homes``, with none of ``walls`` in between.

    A jump with a value is always allowed; a jump with a label needs a statement around it with that label.
    """
    around = inside(homes, walls)

    def predicates(node: Node) -> bool:
        operand = node.named_children[0] if node.named_child_count else None
        if operand is None or operand.type in COMMENTS:
            return around(node)
        if operand.type != "label" and not node.type.endswith("_statement"):
            return True
        # a statement's label is its first child
        return any(one.child_count and one.children[0].text == operand.text for one in _around(node, walls))

    return predicates


def awaited(node: Node) -> bool:
    """Allow a node only in an ``async`` function, or outside of all functions in a module."""
    for around in _around(node):
        if FUNCTION.match(around.type):
            return any(child.type == "async" for child in around.children)
        if around.parent is None:
            return any(child.type in MODULE_PARTS for child in around.children)
    return True


def macro(node: Node) -> bool:
    """Allow a node that a macro may stand for: a word, an expression that begins with a call, or assembly."""
    if node.type in ("identifier", "gnu_asm_expression"):
        return True
    while node.child_count:
        head = node.children[0]
        if head.type == "identifier":
            return node.type == "call_expression"
        node = head
    return False


def matched(element: Node) -> bool:
    """Allow an element only if its closing tag has the name of its opening tag."""
    return _tag_name(element.children[0]) == _tag_name(element.children[-1])


def _tag_name(tag: Node) -> bytes:
    name = tag.child_by_field_name("name")
    return b"".join((name.text or b"").split()) if name is not None else b""
