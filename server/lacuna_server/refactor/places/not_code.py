"""Finds the parts of a file that are not code: comments, and lines whose white space belongs to a string or text."""

import re
from bisect import bisect_left
from collections.abc import Iterator

from tree_sitter import Node, Tree

from lacuna_model.syntax import Language

Span = tuple[int, int]

# Types of nodes whose lines keep every byte, in any language; that includes code interpolated in them.
_KEPT = re.compile(
    r"string|heredoc|nowdoc|comment|template_literal|quoted_attribute|delimited_symbol|shell_command|regex|"
    r"text_interpolation|(^|_)expansion$"
)
# Nodes of several strings with code between them.
_LISTS = frozenset(("concatenated_string", "chained_string", "string_array"))
# Nodes of text in which a renderer collapses white space.
_FOLDED = {"html": "text", "javascript": "jsx_text", "typescript": "jsx_text", "tsx": "jsx_text"}
_UNFOLDED_ELEMENTS = (b"pre", b"textarea")
# The start of a Ruby comment that has to begin in the first column. A `subshell` is a string in Ruby and code in Bash.
_FIRST_COLUMN = b"=begin"
_COMMANDS = {"ruby": "subshell"}
# In YAML the indentation of a string counts relative to its key, so the string keeps its value when both move.
_RELATIVE = frozenset(("yaml",))


def comments(tree: Tree) -> tuple[Span, ...]:
    """Returns the spans of a file's comments in order, without the line end that some grammars include."""
    found = []
    stack = [tree.root_node]
    while stack:
        node = stack.pop()
        if "comment" in node.type and node.is_named:
            found.append((node.start_byte, node.start_byte + len((node.text or b"").rstrip())))
        else:
            stack += reversed(node.children)
    return tuple(found)


class KeptLines:
    """The lines of a file that begin inside a string, comment or text, so that their indentation must not change."""

    def __init__(self, tree: Tree, language: Language) -> None:
        kept = () if language.name in _RELATIVE else _kept(tree.root_node, language.name)
        self._spans = sorted(kept)

    def __contains__(self, line: int) -> bool:
        """Returns whether a line, given by the byte offset of its beginning, is one of them."""
        index = bisect_left(self._spans, (line,)) - 1
        return index >= 0 and line < self._spans[index][1]


def _kept(root: Node, language: str) -> Iterator[Span]:
    """Yields disjoint spans of several lines; lines that begin inside a span are kept."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.start_point.row == node.end_point.row or node.type == _FOLDED.get(language):
            continue
        if _is_kept(node, language):
            in_front = (node.text or b"").startswith(_FIRST_COLUMN)
            yield node.start_byte - in_front, node.end_byte
        else:
            stack += node.children


def _is_kept(node: Node, language: str) -> bool:
    if node.type in _LISTS:
        return False
    leaf = node.child_count == 0
    return leaf or bool(_KEPT.search(node.type)) or node.type == _COMMANDS.get(language) or _is_unfolded(node)


def _is_unfolded(node: Node) -> bool:
    """Returns whether a node is an HTML element that shows its white space."""
    if node.type != "element":
        return False
    name = node.children[0].named_children[:1]
    return bool(name) and (name[0].text or b"").lower() in _UNFOLDED_ELEMENTS
