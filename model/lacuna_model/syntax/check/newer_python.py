"""Rewrites Python that is newer than the interpreter line by line, so that CPython can check the rest.

The project decides the version of a file, so the grammar tells which newer syntax it has: type parameters, ``type``
statements, any quote in an f-string, template strings, ``except A, B``.
"""

import re
import sys
from collections.abc import Iterator

from tree_sitter import Node

from lacuna_model.languages.registry import language_for
from lacuna_model.syntax.check.python_compiler import compiled

NEWEST = (3, 14)  # an interpreter from this version on needs no rewriting
HINTS = re.compile(
    rb"\btype[ \t]+\w|\b(?:def|class)[ \t]+\w+[ \t]*\[|\bexcept\b[^:\n(]*,|\b(?:[fFtT][rR]?|[rR][fFtT])[\"']"
)
# The most strings in each other of a text that is rewritten: one more at most doubles the work.
MAX_NESTED = 6
BOUNDS = frozenset({"class_definition", "function_definition"})


def without_newer(text: bytes) -> bytes | None:
    """The text with newer syntax replaced by older syntax of as many lines; None if there is none.

    None also where it has more than :data:`MAX_NESTED` strings in each other.
    """
    language = language_for(name="python")
    if sys.version_info >= NEWEST or HINTS.search(text) is None or language is None:
        return None
    root = language.parser().parse(text).root_node
    if not _is_flat(root):
        return None
    parts, since = list[bytes](), 0
    for start, end, older in _replacements(root):
        parts += [text[since:start], older]
        since = end
    return b"".join([*parts, text[since:]]) if parts else None


def _is_flat(root: Node) -> bool:
    """Whether a tree has no more than :data:`MAX_NESTED` strings in each other."""
    waiting = [(root, 0)]
    while waiting:
        node, level = waiting.pop()
        level += node.type == "string"
        if level > MAX_NESTED:
            return False
        waiting += [(child, level) for child in node.named_children]
    return True


def _replacements(root: Node) -> Iterator[tuple[int, int, bytes]]:
    """The replacements (start, end, text) in the order of the text, none within another."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        older = _older(node)
        if older is None:
            waiting += reversed(node.children)
        else:
            yield older


def _older(node: Node) -> tuple[int, int, bytes] | None:
    """The range of a node's newer syntax and its replacement; None without any."""
    lines = node.end_point.row - node.start_point.row
    if node.type == "type_alias_statement":
        return node.start_byte, node.end_byte, b"_ = (" + b"\n" * lines + b"0)"
    if node.type == "type_parameter" and node.parent is not None and node.parent.type in BOUNDS:
        return node.start_byte, node.end_byte, b"\\\n" * lines
    if node.type == "string" and _is_newer_string(node):
        quote = b'"""' if lines else b'"'
        return node.start_byte, node.end_byte, quote + b"\n" * lines + quote
    if node.type == "except_clause":
        values = node.children_by_field_name("value")
        if len(values) > 1 and all(value.type != "as_pattern" for value in values):
            start, end = values[0].start_byte, values[-1].end_byte
            own = (node.text or b"")[start - node.start_byte : end - node.start_byte]
            return start, end, b"(" + own + b")"
    return None


def _is_newer_string(node: Node) -> bool:
    """Whether a string with expressions is newer than the interpreter, though all its expressions are valid.

    A template string always is, an f-string only if the interpreter cannot parse it.
    """
    begin = node.children[0].text or b"" if node.children else b""
    if not {b"f", b"t"} & {bytes([byte]) for byte in begin.lower()} or node.has_error:
        return False
    if b"t" not in begin.lower() and _reads(node.text or b""):
        return False
    holes = [child for child in node.children if child.type == "interpolation"]
    inner = [child.child_by_field_name("expression") for child in holes]
    return all(one is not None and _reads(_rewritten(one)) for one in inner)


def _rewritten(node: Node) -> bytes:
    text = node.text or b""
    return without_newer(text) or text


def _reads(expression: bytes) -> bool:
    try:
        compiled(b"(" + expression + b"\n)")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
