"""Selects the places of a refactor in a file by structural patterns, tree-sitter queries or ranges."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tree_sitter import Node

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.places.matcher import MATCHER
from lacuna_server.refactor.places.matching import VARIABLE, Question, Span
from lacuna_server.refactor.places.source import Source

WHOLE = "MATCH"
# The captures of a query that name the node to replace, or the node to put text before or after.
ROLES = ("place", "before", "after")
UNKNOWN_TO_AST_GREP = frozenset({"toml"})


@dataclass(frozen=True, slots=True)
class Match:
    """A place (byte offsets) and its named pieces, which a template may use; an empty piece is an empty span."""

    start: int
    end: int
    captures: Mapping[str, Span] = field(default_factory=dict)


def pattern_names(pattern: str) -> frozenset[str]:
    """Returns the names that a pattern binds by ``$NAME`` and ``$$$NAME``; names that begin with ``_`` bind nothing."""
    return frozenset(name for _, name in VARIABLE.findall(pattern) if not name.startswith("_"))


def by_pattern(source: Source, pattern: str) -> list[Match]:
    """Returns the places that an ast-grep pattern matches, including nested ones.

    Raises RequestError for a pattern that is not valid in the language and for a language without patterns, and
    UnparsableError where ast-grep takes too long.
    """
    language = source.language.name
    if language in UNKNOWN_TO_AST_GREP:
        raise RequestError(f"there are no structural patterns for {language}; use a query")
    found = MATCHER.ask(Question(source.text, pattern, language))
    if found.refused:
        raise RequestError(f"the pattern is not {language}: {found.refused}")
    if found.broken:
        raise RequestError(f"the pattern is not {language}: {pattern!r} does not parse")
    return [_pattern_match(source, span, captures) for span, captures in found.matches]


def by_query(source: Source, query: str) -> list[Match]:
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


def by_ranges(source: Source, spans: Sequence[Span]) -> list[Match]:
    """Returns the given ranges as places. Raises RequestError where two overlap."""
    ordered = sorted(spans)
    for before, after in pairwise(ordered):
        if after[0] < before[1] or after == before:
            line, column = source.position(after[0])
            raise RequestError(f"the ranges of {source.path} overlap at {line}:{column}")
    return [Match(start, end, {WHOLE: (start, end)}) for start, end in ordered]


def span(node: Node) -> Span:
    """Returns the byte span of a tree-sitter node."""
    return node.start_byte, node.end_byte


def _pattern_match(source: Source, span: Span, captures: Mapping[str, Span]) -> Match:
    """Converts a match from character offsets to byte offsets."""

    def in_bytes(place: Span) -> Span:
        return source.offset(place[0]), source.offset(place[1])

    start, end = in_bytes(span)
    return Match(start, end, {WHOLE: (start, end)} | {name: in_bytes(place) for name, place in captures.items()})


def _query_match(spans: dict[str, Span]) -> Match:
    roles = [role for role in ROLES if role in spans] or (list(spans) if len(spans) == 1 else [])
    if len(roles) != 1:
        raise RequestError("the query needs one capture named @place, @before or @after")
    start, end = spans[roles[0]]
    captures = {name.upper(): span for name, span in spans.items()} | {WHOLE: (start, end)}
    start, end = {"before": (start, start), "after": (end, end)}.get(roles[0], (start, end))
    return Match(start, end, captures)
