"""Finds bodies of functions that are only stubs, and the definition around a place."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from lacuna_model.core.params import Region
from lacuna_model.syntax import Language

_STUB = re.compile(
    rb"(pass|\.\.\.|raise NotImplementedError(\(.*\))?|(todo|unimplemented)!\(.*\);?|"
    rb"(panic\(|throw ).*\b(todo|not ?implemented).*)",
    re.IGNORECASE | re.DOTALL,
)
_FUNCTION = re.compile("function|method")
_TODO = re.compile(rb"\b(TODO|FIXME)\b")


def stubs(text: bytes, language: Language, start: int, end: int) -> list[Region]:
    """Returns the bodies between two byte offsets that hold only ``...``, ``pass``, ``TODO`` or the like.

    Comments and docstrings in a body are kept, because they describe the code to fill in.
    """
    root = language.parser().parse(text).root_node
    return [
        region
        for body in _bodies(root)
        if body.start_byte < end and body.end_byte > start and (region := _stub(body)) is not None
    ]


def scope(text: bytes, language: Language, at: int) -> tuple[str, int, int]:
    """Returns the name ("" for the file), start and end of the class, else function, else file around a byte offset."""
    node = language.parser().parse(text).root_node.descendant_for_byte_range(at, at)
    around: list[Node] = []
    while node is not None and node.parent is not None:
        if node.child_by_field_name("body") is not None and node.child_by_field_name("name") is not None:
            around.append(node)
        node = node.parent
    classes = [found for found in around if not _FUNCTION.search(found.type)]
    if not around:
        return "", 0, len(text)
    chosen = (classes or around)[0]
    name = chosen.child_by_field_name("name")
    return ((name and name.text) or b"").decode(), chosen.start_byte, chosen.end_byte


def _bodies(node: Node) -> Iterator[Node]:
    """Yields the bodies of functions and methods, in order."""
    for child in node.children:
        body = child.child_by_field_name("body")
        if body is not None and _FUNCTION.search(child.type):
            yield body
        yield from _bodies(child)


def _stub(body: Node) -> Region | None:
    comments = [child for child in body.named_children if "comment" in child.type]
    statements = [child for child in body.named_children if "comment" not in child.type]
    if statements and _is_docstring(statements[0]) and len(statements) > 1:
        statements = statements[1:]
    if len(statements) == 1 and _STUB.fullmatch(statements[0].text or b""):
        return Region(statements[0].start_byte, statements[0].end_byte)
    if statements or not (body.text or b"").startswith(b"{"):
        return None
    if not any(_TODO.search(comment.text or b"") for comment in comments):
        return None
    return Region(comments[-1].end_byte, body.end_byte - 1)


def _is_docstring(node: Node) -> bool:
    return node.type == "expression_statement" and bool(node.named_children) and node.named_children[0].type == "string"
