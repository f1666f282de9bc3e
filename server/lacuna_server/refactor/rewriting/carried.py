"""Keeps the comments of a match, and finds words of a match that its pattern does not name.

A pattern ignores comments, and skips words such as ``async``. Neither may vanish. A comment goes where the template
puts the piece next to it. A place where this is impossible, or where a word would be lost, is left out.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tree_sitter import Node

from lacuna_server.refactor.places.matching import VARIABLE, Span
from lacuna_server.refactor.places.select import WHOLE, Match
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.rewriting.rewrite import LeftOut, first_line
from lacuna_server.refactor.rewriting.template import Template, Variable

# The place of a comment: before its piece, or on a line above it; directly after the piece, after the separator that
# follows it, at the end of the template's line, or after the piece with the rest on a new line.
Place: TypeAlias = Literal["in front", "above", "behind", "separator", "line end", "break"]

SEPARATORS = re.compile(rb"[\s,;]*")
SEPARATOR = re.compile(r"[ \t]*[,;]")
OPEN, CLOSED = ("(", "[", "{", ","), (")", "]", "}")
# Tokens that do not count when pattern and match differ in them.
PASSED_OVER = frozenset((",", ";", "(", ")"))


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment and the blanks before it; ``to_line_end`` tells that no other text may follow it on its line."""

    start: int
    end: int
    lead: str
    to_line_end: bool


@dataclass(frozen=True, slots=True)
class Carried:
    """A match, and for each of its pieces by name the comments that move together with it."""

    match: Match
    beside: Mapping[str, Sequence[tuple[Comment, Place]]] = field(default_factory=dict)


def carried(source: Source, match: Match, template: Template, pattern: str) -> Carried | LeftOut:
    """Returns the match with its comments, or the reason to leave it out."""
    start, end = match.captures.get(template.after, (0, 0))
    if start < end or WHOLE in template.names:
        return Carried(match)
    word = _passed_over(source, match, pattern)
    if word:
        return LeftOut(match.start, f"the pattern does not name its {word!r}, which would be lost; not changed")
    return _Homes(source, match, template).all()


class _Homes:
    """Finds a place for each comment of a match, except those inside a piece that the template uses."""

    def __init__(self, source: Source, match: Match, template: Template) -> None:
        self._source, self._match, self._parts = source, match, template.parts
        self._uses: dict[str, int] = {}
        for index, part in enumerate(template.parts):
            if isinstance(part, Variable):
                self._uses.setdefault(part.name, index)
        self._pieces = sorted(
            (span, name) for name, span in match.captures.items() if name != WHOLE and span[0] < span[1]
        )
        self._line_end_taken = False
        first = bisect_left(source.comments, (match.start,))
        self._comments = source.comments[first : bisect_left(source.comments, (match.end,))]

    def all(self) -> Carried | LeftOut:
        """Returns the match with all comments; LeftOut where one has no place."""
        found: dict[str, list[tuple[Comment, Place]]] = {}
        for span in self._comments:
            if any(start <= span[0] and span[1] <= end and name in self._uses for (start, end), name in self._pieces):
                continue
            comment = self._comment(span)
            home = next((home for home in self._homes(comment) if home), None)
            if home is None:
                said = first_line(self._source.slice(*span))
                return LeftOut(self._match.start, f"the template has no place for its comment {said!r}; not changed")
            name, place = home
            self._line_end_taken = self._line_end_taken or place == "line end"
            found.setdefault(name, []).append((comment, place))
        return Carried(self._match, found)

    def _comment(self, span: Span) -> Comment:
        lead = self._source.lead(span[0])
        blanks = lead[len(lead.rstrip(" \t")) :]
        return Comment(*span, blanks if lead.strip() and blanks else " ", self._source.is_line_comment(span))

    def _homes(self, comment: Comment) -> Iterator[tuple[str, Place] | None]:
        """Yields the places that a comment can have, best first; None for a side without a place."""
        marks = self._source.language.lexicon.line_comment
        if comment.to_line_end and not self._source.data[comment.start : comment.end].startswith(marks):
            return  # a comment that has to begin its line
        left = max((piece for piece in self._pieces if piece[0][1] <= comment.start), default=None)
        right = min((piece for piece in self._pieces if piece[0][0] >= comment.end), default=None)
        sides = []
        if right and self._blank(comment.end, right[0][0]):
            sides.append((self._before, right[1]))
        if left and self._separated(left[0][1], comment.start):
            sides.append((self._behind, left[1]))
        if self._source.lead(comment.start).strip() and not self._source.rest(comment.end).strip():
            sides.reverse()
        for side, name in sides:
            if name not in self._uses:
                return  # the comment belongs to a piece that the template drops
            yield side(comment, name)

    def _before(self, comment: Comment, name: str) -> tuple[str, Place] | None:
        index = self._uses[name]
        if not (comment.to_line_end or b"\n" in self._source.data[comment.start : comment.end]):
            return name, "in front"
        head = self._parts[index - 1] if index else "\n"
        if not isinstance(head, str):
            return None
        if not index and self._source.lead(self._match.start).strip():
            return None
        if not head.rpartition("\n")[2].strip() and "\n" in head:
            return name, "above"
        return (name, "in front") if head.rstrip().endswith(OPEN) else None

    def _behind(self, comment: Comment, name: str) -> tuple[str, Place] | None:
        if not comment.to_line_end:
            return name, "behind"
        following = self._parts[self._uses[name] + 1 :]
        literal = following[0] if following and isinstance(following[0], str) else ""
        if SEPARATOR.match(literal):
            return name, "separator"
        ends = any(isinstance(part, str) and "\n" in part for part in following)
        if (ends or not self._source.rest(self._match.end).strip()) and not self._line_end_taken:
            return name, "line end"
        return (name, "break") if literal.lstrip().startswith(CLOSED) else None

    def _blank(self, start: int, end: int) -> bool:
        return not self._code(start, end).strip()

    def _separated(self, start: int, end: int) -> bool:
        return SEPARATORS.fullmatch(self._code(start, end)) is not None

    def _code(self, start: int, end: int) -> bytes:
        """Returns the bytes between two offsets, with comments replaced by a blank."""
        data, position, out = self._source.data, start, b""
        for comment in self._comments:
            if start <= comment[0] and comment[1] <= end:
                out += data[position : comment[0]] + b" "
                position = comment[1]
        return out + data[position:end]


def _passed_over(source: Source, match: Match, pattern: str) -> str:
    """Returns a word of the match that is in none of its pieces and comments nor in the pattern; "" if there is none.

    A pattern with an unnamed or repeated metavariable is not checked, because the spans of these are unknown.
    """
    names = Counter(name for _, name in VARIABLE.findall(pattern))
    if not pattern or any(name.startswith("_") or count > 1 for name, count in names.items()):
        return ""
    pieces = [span for name, span in match.captures.items() if name != WHOLE]
    place = source.tree.root_node.descendant_for_byte_range(match.start, match.end)
    for leaf in _leaves(place, match.start, match.end, pieces) if place else ():
        said = (leaf.text or b"").decode().strip()
        if said and "comment" not in leaf.type and said not in PASSED_OVER and said not in pattern:
            return said
    return ""


def _leaves(root: Node, start: int, end: int, pieces: Sequence[Span]) -> Iterator[Node]:
    """Yields the leaves between two offsets that are in none of the pieces."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.end_byte <= start or node.start_byte >= end:
            continue
        if any(first <= node.start_byte and node.end_byte <= last for first, last in pieces):
            continue
        if node.child_count == 0 and start <= node.start_byte and node.end_byte <= end:
            yield node
        stack += reversed(node.children)
