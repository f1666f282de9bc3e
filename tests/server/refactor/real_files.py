"""Collects the parts of a real file that a refactor must keep unchanged: names, literals, strings and comments."""

import re
from collections import Counter
from collections.abc import Iterator

from tree_sitter import Node

from lacuna_server.refactor.places.source import Source

# By language: a query for the nodes to wrap, and the template that wraps them.
WRAPS = {
    "python": ("[(if_statement) (for_statement) (function_definition) (expression_statement)]", "if x:\n    $MATCH"),
    "javascript": ("[(if_statement) (expression_statement) (return_statement)]", "{\n    $MATCH\n}"),
    "typescript": ("[(if_statement) (expression_statement) (return_statement)]", "{\n    $MATCH\n}"),
    "tsx": ("[(if_statement) (expression_statement) (return_statement)]", "{\n    $MATCH\n}"),
    "go": ("[(if_statement) (expression_statement) (return_statement)]", "{\n    $MATCH\n}"),
    "rust": ("[(expression_statement) (let_declaration)]", "{\n    $MATCH\n}"),
    "java": ("[(if_statement) (expression_statement) (for_statement)]", "if (x) {\n    $MATCH\n}"),
    "c": ("[(if_statement) (expression_statement) (for_statement)]", "if (x) {\n    $MATCH\n}"),
    "cpp": ("[(if_statement) (expression_statement) (for_statement)]", "if (x) {\n    $MATCH\n}"),
    "csharp": ("[(if_statement) (expression_statement)]", "if (x) {\n    $MATCH\n}"),
    "ruby": ("[(method) (if) (class)]", "if x\n  $MATCH\nend"),
    "php": ("[(if_statement) (expression_statement) (echo_statement)]", "if (x) {\n    $MATCH\n}"),
    "bash": ("[(if_statement) (redirected_statement) (for_statement)]", "if x; then\n    $MATCH\nfi"),
    "lua": ("[(if_statement) (assignment_statement) (function_declaration)]", "do\n    $MATCH\nend"),
    "css": ("(rule_set)", "@media x {\n    $MATCH\n}"),
    "html": ("(element)", "<x>\n    $MATCH\n</x>"),
    "json": ("(object)", "[\n    $MATCH\n]"),
}
PIECE = re.compile("content|escape|fragment|start|end|value|encoding|begin|quotation|string_literal$")
MARKUP = ("jsx_text", "text")
STRINGS = ("string", "heredoc", "nowdoc", "template", "quoted", "shell_command")


def kept_texts(source: Source) -> Counter[str]:
    """Count every name, literal, piece of a string and comment of a file, and the words of its markup."""
    found = Counter[str]()
    for node in nodes(source.tree.root_node):
        if node.type in MARKUP and source.language.name != "php":
            found.update(text(node).split())
        elif node.is_named and node.child_count == 0 and node.start_byte < node.end_byte:
            found[text(node).rstrip()] += 1
    return found


def strings(source: Source) -> Counter[str]:
    """Count the complete strings of a file, except strings with code, which may be rewritten."""
    found = Counter[str]()
    for node in nodes(source.tree.root_node):
        if any(word in node.type for word in STRINGS) and node.child_count and not _holds_code(node):
            found[text(node)] += 1
    return found


def _holds_code(node: Node) -> bool:
    return any(not PIECE.search(child.type) for child in nodes(node) if child.is_named and child != node)


def nodes(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += node.children


def text(node: Node) -> str:
    return (node.text or b"").decode()
