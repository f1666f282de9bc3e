"""Selects the places of a refactor in a file by structural patterns, tree-sitter queries or ranges."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tree_sitter import Node

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.places.matching import Span, find
from lacuna_server.refactor.places.pattern import ParsedPattern
from lacuna_server.refactor.places.source import Source

WHOLE = "MATCH"
# The captures of a query that name the node to replace, or the node to put text before or after.
ROLES = ("place", "before", "after")


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """A place (byte offsets) and its named pieces, which a template may use; an empty piece is an empty span.

    The place of a pattern also has the span of each of its tokens and metavariables, after its span in the pattern.
    ``broken`` tells that it has, or is in, a part that does not parse.
    """

    start: int
    end: int
    captures: Mapping[str, Span] = field(default_factory=dict)
    tokens: tuple[tuple[Span, Span], ...] = ()
    broken: bool = False


def by_readings(source: Source, group: Sequence[ParsedPattern]) -> list[PatternMatch]:
    """Returns the places of any of these readings of a pattern, including nested ones. Raises UnparsableError."""
    places: dict[Span, PatternMatch] = {}
    for reading in group:
        if all(word in source.data for word in reading.words()):
            for found in find(reading, source.tree, source.data, source.language):
                captures = {WHOLE: (found.start, found.end)} | found.captures
                match = PatternMatch(found.start, found.end, captures, found.tokens, found.broken)
                places.setdefault((found.start, found.end), match)
    chosen: list[PatternMatch] = []
    for match in sorted(places.values(), key=lambda match: (match.start, -match.end)):
        last = chosen[-1] if chosen else None
        if last is None or match.start > last.start or source.data[match.end : last.end].strip(b"; \t\r\n"):
            chosen.append(match)  # and not the same place without its end
    return chosen


def by_query(source: Source, query: str) -> list[PatternMatch]:
    """Returns the places that a tree-sitter query matches.

    The node captured as ``@place`` is replaced; ``@before`` and ``@after`` put text before or after their node. A query
    with only one capture may give it any name. Every other capture is a metavariable: ``@name`` is ``$NAME``. Raises
    RequestError for an invalid query.
    """
    found = []
    for captures in source.query(query):
        spans = {name: (nodes[0].start_byte, nodes[-1].end_byte) for name, nodes in captures.items() if nodes}
        found.append(_query_match(spans))
    return found


def query_names(query: str) -> frozenset[str]:
    """Returns the names of the metavariables that a query binds."""
    return frozenset(name.upper() for name in re.findall(r"@([A-Za-z_]\w*)", query))


def by_ranges(source: Source, spans: Sequence[Span]) -> list[PatternMatch]:
    """Returns the given ranges as places. Raises RequestError where two overlap."""
    ordered = sorted(spans)
    for before, after in pairwise(ordered):
        if after[0] < before[1] or after == before:
            line, column = source.position(after[0])
            raise RequestError(f"the ranges of {source.path} overlap at {line}:{column}")
    return [PatternMatch(start, end, {WHOLE: (start, end)}) for start, end in ordered]


def span(node: Node) -> Span:
    """Returns the byte span of a tree-sitter node."""
    return node.start_byte, node.end_byte


def _query_match(spans: dict[str, Span]) -> PatternMatch:
    roles = [role for role in ROLES if role in spans] or (list(spans) if len(spans) == 1 else [])
    if len(roles) != 1:
        raise RequestError("the query needs one capture named @place, @before or @after")
    start, end = spans[roles[0]]
    captures = {name.upper(): span for name, span in spans.items()} | {WHOLE: (start, end)}
    start, end = {"before": (start, start), "after": (end, end)}.get(roles[0], (start, end))
    return PatternMatch(start, end, captures)
