"""The part of a place that changes, and the comments that are carried along."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lacuna_model.text.diff import num_common, num_common_end
from lacuna_model.text.lines import indentation, step
from lacuna_server.refactor.places.matching import WHOLE, PatternMatch, Span
from lacuna_server.refactor.places.pattern import VARIABLE
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.rewriting.rewrite import LeftOut, MetaVariable, Piece, Template, first_line, parse_template

# Ends of a template after which a statement needs no further end.
ENDED = (";", "}", ":")
_WITHIN_NAME = re.compile(rb"(?<=[\w$])[\w$]")
_IN_NAME = re.compile(b"[A-Z0-9_]")
STATEMENT_END = re.compile(rb"\s*;")
# Text that does not count when pattern and match differ in it: separators, brackets, the end of a continued line.
PASSED_OVER = re.compile(rb"[\s,;()\\]+")
Token = tuple[Span, Span]


@dataclass(frozen=True, slots=True)
class Carried:
    """A match of which the bytes ``start``..``end`` become ``parts``, and the rest is kept.

    ``comment`` goes to the end of its line ("": none).
    """

    match: PatternMatch
    start: int
    end: int
    parts: tuple[Piece, ...]
    comment: str = ""


def whole(match: PatternMatch, template: Template) -> Carried:
    """Returns a change of all of the place."""
    return Carried(match, match.start, match.end, template.parts)


def carried(source: Source, match: PatternMatch, template: Template, *, narrow: bool = True) -> Carried | LeftOut:
    """Returns what changes of a match, or the reason to leave it out; ``narrow``: it may keep bytes at its ends."""
    if inserted := _inserted(source, match, template):
        return inserted
    if WHOLE in template.names:
        return whole(match, template)
    change = _changed(source, match, template) if narrow else whole(match, template)
    if _loose(source, change):
        change = whole(_widened(source, match, template), template)
    loose = [source.slice(*one) for one in _loose(source, change)]
    ends_line = len(loose) == 1 and loose[0].encode().startswith(source.language.lexicon.line_comment)
    if loose and (not ends_line or source.rest(match.end).strip()):
        said = first_line(loose[0])
        return LeftOut(match.start, f"the template has no place for its comment {said!r}; not changed")
    if lost := _lost(source, change):
        return LeftOut(match.start, f"the pattern does not name its {lost!r}, which would be lost; not changed")
    return replace(change, comment="".join(loose))


def _inserted(source: Source, match: PatternMatch, template: Template) -> Carried | None:
    """Returns what a template that equals its pattern otherwise inserts behind a metavariable; None for another one.

    The place keeps its own layout then.
    """
    pattern, text = template.pattern.encode(), template.text.encode()
    for (start, end), (first, last) in reversed(match.tokens if len(text) > len(pattern) else ()):
        variable = VARIABLE.fullmatch(pattern[start:end].decode())
        alike = text.startswith(pattern[:end]) and text.endswith(pattern[end:]) and not _IN_NAME.match(text, end)
        if variable and alike and first < last:
            at = without_comments(source, first, last)[0]
            new = text[end : len(text) - len(pattern) + end].decode()
            return Carried(match, at, at, parse_template(new, template.names).parts)
    return None


def without_comments(source: Source, start: int, end: int) -> Span:
    """Returns the end of the last node of a piece, and the end of its trailing comma; only comments follow that."""
    data = source.data
    last = start + len(data[start:end].rstrip())
    while last > start and (comment := source.comment_at(last - 1)):
        last = start + len(data[start : max(start, comment[0])].rstrip())
    return start + len(data[start:last].removesuffix(b",").rstrip()), last


def _changed(source: Source, match: PatternMatch, template: Template) -> Carried:
    """Returns what the template of a pattern changes at a place; for any other place, all of it."""
    pattern, text, tokens = template.pattern.encode(), template.text.encode(), match.tokens
    if not tokens:
        return whole(match, template)
    if pattern == text:
        return Carried(match, match.end, match.end, ())
    holes = template.holes or ((len(text), 0),)
    common = min(num_common(pattern, text), holes[0][0])
    limit = common + (_WITHIN_NAME.match(text, common) is None)
    head = _num_kept(tokens, pattern, sum(end < limit for (_, end), _ in tokens))
    begun = tokens[head - 1][0][1] if head else 0
    common = min(num_common_end(pattern, text), len(pattern) - begun, len(text) - max(begun, holes[-1][1]))
    limit = common + (_WITHIN_NAME.match(text, len(text) - common) is None)
    behind = tokens[head:][::-1]
    tail = _num_kept(behind, pattern, sum(len(pattern) - start < limit for (start, _), _ in behind))
    if (around := _shortened(tokens, head, tail, pattern, text)) is not None:
        head, tail = min(head, around[0] + 1), min(tail, len(tokens) - around[1])
    begun, start = (tokens[head - 1][0][1], tokens[head - 1][1][1]) if head else (0, match.start)
    left, end = (len(pattern) - tokens[-tail][0][0], tokens[-tail][1][0]) if tail else (0, match.end)
    middle = text[begun : len(text) - left].decode()
    gap = pattern[begun : len(pattern) - left].decode()
    if head and gap.isspace() and middle.endswith(gap):  # an insertion keeps what stands between the two tokens
        middle, end = middle.removesuffix(gap), start
    inner = [span for _, span in tokens[head : len(tokens) - tail]]
    if inner and middle.strip():  # blanks that both have beside what stays are those of the file
        lead, trail = indentation(gap), gap[len(gap.rstrip()) :]
        begins, ends = indentation(middle), middle[len(middle.rstrip()) :]
        if head and lead and lead == begins and source.slice(start, inner[0][0]).isspace():
            middle, start = middle[len(lead) :], inner[0][0]
        if tail and trail and trail == ends and source.slice(inner[-1][1], end).isspace():
            middle, end = middle[: len(middle) - len(trail)], inner[-1][1]
    return Carried(match, start, end, parse_template(middle, template.names).parts)


def _num_kept(tokens: Sequence[Token], pattern: bytes, kept: int) -> int:
    """Returns how many of the first ``kept`` tokens stay, so that text may be changed directly beside the last of them.

    It may not beside any number of nodes, and beside a separator.
    """
    while kept:
        (start, end), (first, last) = tokens[kept - 1]
        if first < last and not pattern[start:end].startswith(b"$$$") and pattern[start:end] != b",":
            break
        kept -= 1
    return kept


def _shortened(tokens: Sequence[Token], head: int, tail: int, pattern: bytes, text: bytes) -> tuple[int, int] | None:
    """Returns the brackets, by their tokens, of the outmost list that has fewer elements in the template.

    Such a list is laid out as in the template: line breaks and a comma at its end belong to the elements that are gone.
    """
    begun, left = tokens[head - 1][0][1] if head else 0, len(pattern) - tokens[-tail][0][0] if tail else 0
    gone = pattern[begun : len(pattern) - left].count(b",") - text[begun : len(text) - left].count(b",")
    opened, found = list[int](), list[tuple[int, int]]()
    commas = dict[int, int]()  # the commas that the template lacks, by the bracket that they are in
    for index, ((start, end), _) in enumerate(tokens):
        one = pattern[start:end]
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


def ended(source: Source, match: PatternMatch, template: Template) -> PatternMatch:
    """Returns a match that ends with a ``;`` exactly where its template does, so that the statement keeps its end.

    An empty template removes the ``;`` too.
    """
    pattern, text = template.pattern.rstrip(), template.text.rstrip()
    if not match.tokens:
        return match
    tokens, last = match.tokens[:-1], source.slice(*match.tokens[-1][1])
    if text and pattern.endswith(";") and not text.endswith(ENDED) and tokens and last == ";":
        return replace(_until(match, max(span[1] for _, span in tokens)), tokens=tokens)
    if (not text or text.endswith(";")) and not pattern.endswith(";"):
        found = STATEMENT_END.match(source.data, match.end)
        return _until(match, found.end()) if found else match
    return match


def _until(match: PatternMatch, end: int) -> PatternMatch:
    return replace(match, end=end, captures={**match.captures, WHOLE: (match.start, end)})


def _loose(source: Source, change: Carried) -> list[Span]:
    """Returns the comments of the change that are in none of the pieces that the template uses."""
    used = {part.name for part in change.parts if isinstance(part, MetaVariable)}
    pieces = [span for name, span in change.match.captures.items() if name in used]
    comments = source.comments_within(change.start, change.end)
    return [one for one in comments if not any(start <= one[0] and one[1] <= end for start, end in pieces)]


def _widened(source: Source, match: PatternMatch, template: Template) -> PatternMatch:
    """Returns a match whose pieces have the comments beside them: those within a line, and before any number of nodes.

    A comment belongs to the piece behind it, else to the one before it.
    """
    data = source.data
    for part in template.parts:
        if not isinstance(part, MetaVariable) or part.name not in match.captures:
            continue
        start, end = match.captures[part.name]
        loose = _loose(source, whole(match, template))
        inline = [one for one in loose if not source.is_line_comment(one)]
        for comment in reversed(loose if part.many else inline):
            if comment[1] <= start < end and not data[comment[1] : start].strip():
                start = comment[0]
        for comment in inline:
            if start < end <= comment[0] and not data[end : comment[0]].strip():
                end = comment[1]
        match = replace(match, captures={**match.captures, part.name: (start, end)})
    return match


def _lost(source: Source, change: Carried) -> str:
    """Returns the first word of the change that is in no token or piece of the pattern and in no comment, else ""."""
    match, position = change.match, change.start
    if not match.tokens:
        return ""
    spans = sorted([*(span for _, span in match.tokens), *source.comments_within(match.start, match.end)])
    for start, end in [*spans, (change.end, change.end)]:
        said = PASSED_OVER.sub(b" ", source.data[position : max(position, min(start, change.end))]).strip()
        if said:
            return (re.match(r"\w+|[^\w\s]+", said.decode()) or [""])[0]
        position = max(position, end)
    return ""
