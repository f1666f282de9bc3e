"""The part of a place that changes, and the comments that are carried along."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from lacuna_model.text.diff import num_common, num_common_end
from lacuna_model.text.lines import indentation, step
from lacuna_server.refactor.places.gather import WHOLE, PatternMatch
from lacuna_server.refactor.places.matching import Span
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.rewriting.rewrite import LeftOut, MetaVariable, Piece, Template, first_line, parse_template

STATEMENT_END = ";"
# Ends of a template after which a statement needs no further end.
ENDED = (";", "}", ":")
_JOINED = re.compile(rb"[\w$]")
_STATEMENT_END = re.compile(rb"\s*;")
Token = tuple[Span, Span]


@dataclass(frozen=True, slots=True)
class ChangedPart:
    """The bytes ``start``..``end`` of the file, which become ``parts``; the rest of the place is kept."""

    start: int
    end: int
    parts: tuple[Piece, ...]


def whole(match: PatternMatch, template: Template) -> ChangedPart:
    """Returns all of the place."""
    return ChangedPart(match.start, match.end, template.parts)


def changed(source: Source, match: PatternMatch, template: Template) -> ChangedPart:
    """Returns what the template of a pattern changes at a place; for any other place, all of it."""
    pattern, text = template.pattern.encode(), template.text.encode()
    if not match.tokens or WHOLE in template.names:
        return whole(match, template)
    if pattern == text:
        return ChangedPart(match.end, match.end, ())
    holes = template.holes or ((len(text), 0),)
    common = min(num_common(pattern, text), holes[0][0])
    head = _head(match.tokens, pattern, text, common)
    begun = head[-1][0][1] if head else 0
    common = min(num_common_end(pattern, text), len(pattern) - begun, len(text) - max(begun, holes[-1][1]))
    tail = _tail(match.tokens[len(head) :], pattern, text, common)
    if (around := _shortened(match.tokens, len(head), len(tail), pattern, text)) is not None:
        head, tail = head[: around[0] + 1], list(match.tokens[max(around[1], len(match.tokens) - len(tail)) :])
        begun = head[-1][0][1] if head else 0
    start = head[-1][1][1] if head else match.start
    end = tail[0][1][0] if tail else match.end
    left = len(pattern) - tail[0][0][0] if tail else 0
    middle = text[begun : len(text) - left].decode()
    gap = pattern[begun : len(pattern) - left].decode()
    if head and gap.isspace() and middle.endswith(gap):  # an insertion keeps what stands between the two tokens
        middle, end = middle.removesuffix(gap), start
    inner = [span for _, span in match.tokens[len(head) : len(match.tokens) - len(tail)]]
    if inner and middle.strip():  # blanks that both have beside what stays are those of the file
        lead, trail = indentation(gap), gap[len(gap.rstrip()) :]
        begins, ends = indentation(middle), middle[len(middle.rstrip()) :]
        if head and lead and lead == begins and source.slice(start, inner[0][0]).isspace():
            middle, start = middle[len(lead) :], inner[0][0]
        if tail and trail and trail == ends and source.slice(inner[-1][1], end).isspace():
            middle, end = middle[: len(middle) - len(trail)], inner[-1][1]
    return ChangedPart(start, end, parse_template(middle, template.names).parts)


def ended(source: Source, match: PatternMatch, template: Template) -> PatternMatch:
    """Returns a match that ends with a ``;`` exactly where its template does, so that the statement keeps its end.

    An empty template removes the ``;`` too.
    """
    pattern, text = template.pattern.rstrip(), template.text.rstrip()
    if not match.tokens:
        return match
    if text and pattern.endswith(STATEMENT_END) and not text.endswith(ENDED) and len(match.tokens) > 1:
        last = match.tokens[-1][1]
        if source.slice(*last) == STATEMENT_END:
            return _until(match, match.tokens[:-1])
    if (not text or text.endswith(STATEMENT_END)) and not pattern.endswith(STATEMENT_END):
        return with_end(source, match) or match
    return match


def with_end(source: Source, match: PatternMatch) -> PatternMatch | None:
    """Returns a match with the ``;`` that follows it; None without one."""
    found = _STATEMENT_END.match(source.data, match.end)
    if found is None:
        return None
    end = found.end()
    return replace(match, end=end, captures={**match.captures, WHOLE: (match.start, end)})


def _until(match: PatternMatch, tokens: Sequence[Token]) -> PatternMatch:
    end = max((span[1] for _, span in tokens), default=match.end)
    return replace(match, end=end, tokens=tuple(tokens), captures={**match.captures, WHOLE: (match.start, end)})


def _shortened(tokens: Sequence[Token], head: int, tail: int, pattern: bytes, text: bytes) -> tuple[int, int] | None:
    """Returns the brackets, by their tokens, of the outmost list that has fewer elements in the template.

    Such a list is laid out as in the template: line breaks and a comma at its end belong to the elements that are gone.
    """
    texts = [pattern[start:end] for (start, end), _ in tokens]
    begun, left = tokens[head - 1][0][1] if head else 0, len(pattern) - tokens[-tail][0][0] if tail else 0
    gone = pattern[begun : len(pattern) - left].count(b",") - text[begun : len(text) - left].count(b",")
    opened, found = list[int](), list[tuple[int, int]]()
    commas = dict[int, int]()  # the commas that the template lacks, by the bracket that they are in
    for index, one in enumerate(texts):
        change = step(one.decode())
        if change > 0:
            opened.append(index)
        elif change < 0 and opened:
            first = opened.pop()
            if commas.get(first) and not head <= first < index < len(tokens) - tail:
                found.append((first, index))
        elif one == b"," and opened and head <= index < len(tokens) - tail:
            commas[opened[-1]] = commas.get(opened[-1], 0) + 1
    return min(found, default=None) if gone > 0 else None


def _head(tokens: Sequence[Token], pattern: bytes, text: bytes, common: int) -> list[Token]:
    """Returns the tokens within the first ``common`` bytes, which pattern and template share."""
    found = []
    for token in tokens:
        (_, end), _ = token
        if end > common or (
            end == common and _JOINED.match(text[end : end + 1]) and _JOINED.match(text[end - 1 : end])
        ):
            break
        found.append(token)
    while found and not _bounds(found[-1], pattern):
        found.pop()
    return found


def _tail(tokens: Sequence[Token], pattern: bytes, text: bytes, common: int) -> list[Token]:
    """Returns the tokens within the last ``common`` bytes, which pattern and template share."""
    found: list[Token] = []
    for token in reversed(tokens):
        (start, _), _ = token
        at = start - len(pattern) + len(text)
        joined = at > 0 and _JOINED.match(text[at - 1 : at]) and _JOINED.match(text[at : at + 1])
        if len(pattern) - start > common or (len(pattern) - start == common and joined):
            break
        found.insert(0, token)
    while found and not _bounds(found[0], pattern):
        found.pop(0)
    return found


def _bounds(token: Token, pattern: bytes) -> bool:
    """Returns whether text may be changed directly beside a token: not beside any number of nodes and separators."""
    (start, end), (first, last) = token
    return first < last and not pattern[start:end].startswith(b"$$$") and pattern[start:end] != b","


# The place of a comment: before its piece, or on a line above it; directly after the piece, after the separator that
# follows it, at the end of the template's line, or after the piece with the rest on a new line.
Place: TypeAlias = Literal["in front", "above", "behind", "separator", "line end", "break"]

SEPARATORS = re.compile(rb"[\s,;]*")
SEPARATOR = re.compile(r"[ \t]*[,;]")
OPEN, CLOSED = ("(", "[", "{", ","), (")", "]", "}")
# Text that does not count when pattern and match differ in it: separators, brackets, the end of a continued line.
PASSED_OVER = re.compile(rb"[\s,;()\\]+")


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment and the blanks before it; ``to_line_end`` tells that no other text may follow it on its line."""

    start: int
    end: int
    lead: str
    to_line_end: bool


@dataclass(frozen=True, slots=True)
class Carried:
    """A match, what changes of it, and for each of its pieces by name the comments that move together with it."""

    match: PatternMatch
    change: ChangedPart
    beside: Mapping[str, Sequence[tuple[Comment, Place]]] = field(default_factory=dict)


def carried(source: Source, match: PatternMatch, template: Template, *, narrow: bool = True) -> Carried | LeftOut:
    """Returns the match with its comments, or the reason to leave it out; ``narrow``: it may keep bytes at its ends."""
    start, end = match.captures.get(template.after, (0, 0))
    if start < end or WHOLE in template.names:
        return Carried(match, whole(match, template))
    change = changed(source, match, template) if narrow else whole(match, template)
    if _loose(source, match, change):  # a comment needs all of the template to find its place
        change = whole(match, template)
    lost = _lost(source, match, change)
    if lost:
        return LeftOut(match.start, f"the pattern does not name its {lost!r}, which would be lost; not changed")
    return _Homes(source, match, template, change).all()


class _Homes:
    """Finds a place for each comment of a match, except those inside a piece that the template uses."""

    def __init__(self, source: Source, match: PatternMatch, template: Template, change: ChangedPart) -> None:
        self._source, self._match, self._parts, self._change = source, match, template.parts, change
        self._uses: dict[str, int] = {}
        for index, part in enumerate(template.parts):
            if isinstance(part, MetaVariable):
                self._uses.setdefault(part.name, index)
        self._pieces = sorted(
            (span, name) for name, span in match.captures.items() if name != WHOLE and span[0] < span[1]
        )
        self._line_end_taken = False
        self._comments = source.comments_within(change.start, change.end)

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
        return Carried(self._match, self._change, found)

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


def _loose(source: Source, match: PatternMatch, change: ChangedPart) -> bool:
    """Returns whether a comment of the change is in none of the pieces that the template uses."""
    used = {part.name for part in change.parts if isinstance(part, MetaVariable)}
    pieces = [span for name, span in match.captures.items() if name in used]
    return not all(
        any(start <= comment[0] and comment[1] <= end for start, end in pieces)
        for comment in source.comments_within(change.start, change.end)
    )


def _lost(source: Source, match: PatternMatch, change: ChangedPart) -> str:
    """Returns the first word of the change that is in no token or piece of the pattern and in no comment, else ""."""
    if not match.tokens:
        return ""
    spans = sorted([*(span for _, span in match.tokens), *source.comments_within(match.start, match.end)])
    position = change.start
    for start, end in [*spans, (change.end, change.end)]:
        said = (
            PASSED_OVER.sub(b" ", source.data[position : min(start, change.end)]).strip() if position < start else b""
        )
        if said:
            return (re.match(r"\w+|[^\w\s]+", said.decode()) or [""])[0]
        position = max(position, end)
    return ""
