"""A file with its tree, and what in it is no code."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, takewhile

from tree_sitter import Node, Query, QueryCursor, QueryError, Tree

from lacuna_model.core.errors import RequestError
from lacuna_model.syntax import Language
from lacuna_model.syntax.document import COMPILES
from lacuna_model.syntax.faults import Fault, all_faults
from lacuna_model.text.lines import BYTE_LINE_END, LINE_END, indentation, line_starts, newline_of

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
# A `subshell` is a string in Ruby and code in Bash.
_COMMANDS = {"ruby": "subshell"}
# In YAML the indentation of a string counts relative to its key, so the string keeps its value when both move.
_RELATIVE = frozenset(("yaml",))


def walk(root: Node, enters: Callable[[Node], bool] = lambda node: True) -> Iterator[Node]:
    """Yields the nodes of a tree in the order of the text, a node before its children; those of what it ``enters``."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if enters(node):
            stack += reversed(node.children)


def ancestors(node: Node) -> Iterator[Node]:
    """Yields a node's parent, the parent of that, and so on."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def same_span(node: Node) -> list[Node]:
    """Returns a node, and those around it that have the same span."""
    span = node.byte_range
    return [node, *takewhile(lambda around: around.byte_range == span, ancestors(node))]


def is_comment(node: Node) -> bool:
    """Returns whether a node is a comment."""
    return "comment" in node.type


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


DEFAULT_UNIT = "    "


@dataclass(frozen=True)
class Source:
    """One file in its language. Offsets count bytes of ``data``; ``version`` is that of an open document."""

    path: str
    text: str
    language: Language
    version: int | None = None

    @cached_property
    def data(self) -> bytes:
        """The text in UTF-8."""
        return self.text.encode()

    @cached_property
    def tree(self) -> Tree:
        """The parse tree of ``data``. Raises UnparsableError."""
        return self.language.parser().parse(self.data)

    @cached_property
    def faults(self) -> frozenset[Fault]:
        """The syntax errors. Raises UnparsableError."""
        return all_faults(self.tree, self.data, self.language)

    @cached_property
    def compiles(self) -> bool:
        """Whether a compiler of the language is known, and accepts the text."""
        compiler = COMPILES.get(self.language.name)
        return compiler is not None and compiler(self.data)

    @cached_property
    def newline(self) -> str:
        """The line ending of the file's first line."""
        return newline_of(self.text)

    @cached_property
    def indent_unit(self) -> str:
        """One level of indentation: the most frequent step from a line to a more indented next line."""
        leads = [indentation(line, " \t") for line in LINE_END.split(self.text) if line.strip()]
        steps = Counter(after[len(before) :] for before, after in pairwise(leads) if len(after) > len(before))
        return steps.most_common(1)[0][0] if steps else DEFAULT_UNIT

    def offset(self, character: int) -> int:
        """Returns the byte offset of the character with that index."""
        return character if self.text.isascii() else len(self.text[:character].encode())

    def slice(self, start: int, end: int) -> str:
        """Returns the text between two byte offsets."""
        return self.data[start:end].decode()

    def position(self, offset: int) -> tuple[int, int]:
        """Returns the 1-based line and the 0-based character column of a byte offset."""
        line = bisect_right(self._line_starts, offset)
        return line, len(self.slice(self._line_starts[line - 1], offset))

    @cached_property
    def _line_starts(self) -> list[int]:
        return line_starts(self.data)

    def lead(self, offset: int) -> str:
        """Returns the text before a byte offset on its line."""
        return self.slice(max(self.data.rfind(b"\n", 0, offset), self.data.rfind(b"\r", 0, offset)) + 1, offset)

    def rest(self, offset: int) -> str:
        """Returns the text after a byte offset on its line."""
        found = BYTE_LINE_END.search(self.data, offset)
        return self.slice(offset, found.start() if found else len(self.data))

    def indent_at(self, offset: int) -> str:
        """Returns the indentation of the line of a byte offset."""
        return indentation(self.lead(offset), " \t")

    @cached_property
    def comments(self) -> tuple[Span, ...]:
        """The spans of the comments in order, without the line end that some grammars include."""
        found = (node for node in walk(self.tree.root_node, lambda node: not is_comment(node)) if is_comment(node))
        return tuple((node.start_byte, node.start_byte + len((node.text or b"").rstrip())) for node in found)

    def comment_at(self, offset: int) -> Span | None:
        """Returns the span of the comment that contains a byte, or None."""
        index = bisect_right(self.comments, (offset, len(self.data))) - 1
        return self.comments[index] if index >= 0 and offset < self.comments[index][1] else None

    def comments_within(self, start: int, end: int) -> tuple[Span, ...]:
        """Returns the spans of the comments that begin between two byte offsets."""
        return self.comments[bisect_left(self.comments, (start,)) : bisect_left(self.comments, (end,))]

    def behind_comment(self, offset: int) -> int:
        """Returns the end of the comment that is the rest of the line after a byte offset; else the offset itself."""
        rest = self.rest(offset)
        comment = self.comment_at(offset + len(rest) - len(rest.lstrip()))
        closes = comment is not None and offset <= comment[0] and comment[1] == offset + len(rest.rstrip().encode())
        return comment[1] if comment is not None and closes else offset

    def is_line_comment(self, comment: Span) -> bool:
        """Returns whether a comment extends to the end of its line."""
        text = self.data[slice(*comment)]
        blocks = self.language.lexicon.block_comment
        return not any(text.startswith(opener) and text.endswith(closer) for opener, closer in blocks)

    @cached_property
    def _kept_spans(self) -> list[Span]:
        """Disjoint spans of several lines; lines that begin inside one of them are kept."""
        language = self.language.name
        if language in _RELATIVE:
            return []

        def several(node: Node) -> bool:
            return node.start_point.row < node.end_point.row and node.type != _FOLDED.get(language)

        found = walk(self.tree.root_node, lambda node: several(node) and not _is_kept(node, language))
        kept = (node for node in found if several(node) and _is_kept(node, language))
        # Ruby's =begin has to stay in the first column.
        return [(node.start_byte - (node.text or b"").startswith(b"=begin"), node.end_byte) for node in kept]

    def keeps_line(self, offset: int) -> bool:
        """Returns whether the line that begins there begins inside a string, comment or text: it is not indented."""
        index = bisect_left(self._kept_spans, (offset,)) - 1
        return index >= 0 and offset < self._kept_spans[index][1]

    def query(self, text: str) -> Iterator[dict[str, list[Node]]]:
        """Yields the matches of a tree-sitter query. Raises RequestError where it is invalid for the grammar."""
        try:
            query = Query(self.language.grammar(), text)
        except QueryError as error:
            raise RequestError(f"the query is not one for {self.language.name}: {error}") from error
        for _, captures in QueryCursor(query).matches(self.tree.root_node):
            yield captures
