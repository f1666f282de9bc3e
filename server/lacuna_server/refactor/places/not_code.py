"""What in a file is not code: comments, and the lines whose white space is part of a string or of the text around."""

import re
from bisect import bisect_left
from collections.abc import Iterator

from tree_sitter import Node, Tree

from lacuna_model.syntax import Language

Span = tuple[int, int]

# Nodes whose lines keep every byte, in whatever language; what is interpolated in them stays with them.
_KEPT = re.compile(
    r"string|heredoc|nowdoc|comment|template_literal|quoted_attribute|delimited_symbol|shell_command|regex|"
    r"text_interpolation|(^|_)expansion$"
)
# Several strings with code between them.
_LISTS = frozenset(("concatenated_string", "chained_string", "string_array"))
# Text whose white space a renderer folds.
_FOLDED = {"html": "text", "javascript": "jsx_text", "typescript": "jsx_text", "tsx": "jsx_text"}
_UNFOLDED_ELEMENTS = (b"pre", b"textarea")
# A Ruby comment that begins and ends in the first column; in Bash a `subshell` is code.
_FIRST_COLUMN = b"=begin"
_COMMANDS = {"ruby": "subshell"}
# A YAML string is told by its indentation relative to its key: it keeps its value when both move.
_RELATIVE = frozenset(("yaml",))


def comments(tree: Tree) -> tuple[Span, ...]:
    """The comments of a file in order, without the line end that a grammar may count to one."""
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
    """The lines of a file that begin inside something which is not code, and so cannot be indented anew."""

    def __init__(self, tree: Tree, language: Language) -> None:
        kept = () if language.name in _RELATIVE else _kept(tree.root_node, language.name)
        self._spans = sorted(kept)

    def __contains__(self, line: int) -> bool:
        """Whether a line, given by the byte offset of its beginning, is one of them."""
        index = bisect_left(self._spans, (line,)) - 1
        return index >= 0 and line < self._spans[index][1]


def _kept(root: Node, language: str) -> Iterator[Span]:
    """Disjoint spans of several lines; a line that begins behind the start of one and before its end is kept."""
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
    """Whether a node is an element of HTML whose white space is shown."""
    if node.type != "element":
        return False
    name = node.children[0].named_children[:1]
    return bool(name) and (name[0].text or b"").lower() in _UNFOLDED_ELEMENTS
