"""The part of a place that changes, and the comments that are carried along."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lacuna_model.text.diff import num_common, num_common_end
from lacuna_model.text.lines import indentation, step
from lacuna_server.refactor.places.matching import WHOLE, PatternMatch, Span
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


# Text that does not count when pattern and match differ in it: separators, brackets, the end of a continued line.
PASSED_OVER = re.compile(rb"[\s,;()\\]+")


@dataclass(frozen=True, slots=True)
class Carried:
    """A match, what changes of it, and the comment that goes to the end of its line ("": none)."""

    match: PatternMatch
    change: ChangedPart
    comment: str = ""


def carried(source: Source, match: PatternMatch, template: Template, *, narrow: bool = True) -> Carried | LeftOut:
    """Returns what changes of a match, or the reason to leave it out; ``narrow``: it may keep bytes at its ends."""
    start, end = match.captures.get(template.after, (0, 0))
    if start < end or WHOLE in template.names:
        return Carried(match, whole(match, template))
    change = changed(source, match, template) if narrow else whole(match, template)
    if _loose(source, match, change):
        match = _widened(source, match, template)
        change = whole(match, template)
    loose = [source.slice(*one) for one in _loose(source, match, change)]
    ends_line = len(loose) == 1 and loose[0].encode().startswith(source.language.lexicon.line_comment)
    if loose and (not ends_line or source.rest(match.end).strip()):
        said = first_line(loose[0])
        return LeftOut(match.start, f"the template has no place for its comment {said!r}; not changed")
    if lost := _lost(source, match, change):
        return LeftOut(match.start, f"the pattern does not name its {lost!r}, which would be lost; not changed")
    return Carried(match, change, "".join(loose))


def _loose(source: Source, match: PatternMatch, change: ChangedPart) -> list[Span]:
    """Returns the comments of the change that are in none of the pieces that the template uses."""
    used = {part.name for part in change.parts if isinstance(part, MetaVariable)}
    pieces = [span for name, span in match.captures.items() if name in used]
    comments = source.comments_within(change.start, change.end)
    return [one for one in comments if not any(start <= one[0] and one[1] <= end for start, end in pieces)]


def _widened(source: Source, match: PatternMatch, template: Template) -> PatternMatch:
    """Returns a match whose pieces have the comments beside them: those within a line, and before any number of nodes.

    A comment belongs to the piece behind it, else to the one before it.
    """
    data, captures = source.data, dict(match.captures)
    for part in template.parts:
        if not isinstance(part, MetaVariable) or part.name not in captures:
            continue
        start, end = captures[part.name]
        loose = _loose(source, match, whole(match, template))
        inline = [one for one in loose if not source.is_line_comment(one)]
        for comment in reversed(loose if part.many else inline):
            if comment[1] <= start < end and not data[comment[1] : start].strip():
                start = comment[0]
        for comment in inline:
            if start < end <= comment[0] and not data[end : comment[0]].strip():
                end = comment[1]
        captures[part.name] = start, end
    return replace(match, captures=captures)


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
