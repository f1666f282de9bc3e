"""Queries on Python parse trees that several recipes use."""

from collections.abc import Iterator

from tree_sitter import Node

from lacuna_server.refactor.places.source import Source

SCOPES = frozenset({"function_definition", "class_definition", "lambda"})
IMPORTS = frozenset({"import_statement", "import_from_statement", "future_import_statement"})


def nodes(root: Node, *types: str) -> Iterator[Node]:
    """Yields the nodes of these types in a tree, in the order of the text."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in types:
            yield node
        stack += reversed(node.children)


def own_nodes(function: Node, *types: str) -> Iterator[Node]:
    """Yields the nodes of these types in a function's body, without those in nested functions and classes."""
    body = function.child_by_field_name("body")
    stack = [body] if body is not None else []
    while stack:
        node = stack.pop()
        if node.type in types:
            yield node
        if node.type not in SCOPES:
            stack += reversed(node.children)


def ancestors(node: Node) -> Iterator[Node]:
    """Yields a node's parent, the parent of that, and so on."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def text(node: Node | None) -> str:
    """Returns the text of a node; empty for None."""
    return "" if node is None or node.text is None else node.text.decode()


def name(node: Node) -> str:
    """Returns the text of a node's ``name`` field."""
    return text(node.child_by_field_name("name"))


def head_imports(source: Source) -> list[Node]:
    """Returns the imports at the beginning of a module."""
    found: list[Node] = []
    for node in source.tree.root_node.named_children:
        if node.type in IMPORTS:
            found.append(node)
        elif node.type != "comment" and not is_docstring(node):
            break
    return found


def is_docstring(node: Node) -> bool:
    """Returns whether a statement is only a string."""
    return (
        node.type == "expression_statement" and node.named_child_count == 1 and node.named_children[0].type == "string"
    )
