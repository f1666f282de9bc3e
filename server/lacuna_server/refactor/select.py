"""Where a refactor applies: structural patterns, tree-sitter queries and plain ranges."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ast_grep_py import Pattern, SgNode, SgRoot
from tree_sitter import Node

from lacuna_model.errors import RequestError
from lacuna_server.refactor.source import Source

Span = tuple[int, int]
WHOLE = "MATCH"
VARIABLE = re.compile(r"(\${1,3})([A-Z_][A-Z0-9_]*)")
# What a query calls the node that is replaced, or that text is put in front of or behind.
ROLES = ("place", "before", "after")
# On its own `f(x)` is a declaration to C.
CONTEXTS = {"c": "void f() { PATTERN; }"}
UNKNOWN_TO_AST_GREP = frozenset({"toml"})


@dataclass(frozen=True, slots=True)
class Match:
    """A place (byte offsets) and the pieces of it that a template may use by name; an empty piece is an empty span."""

    start: int
    end: int
    captures: Mapping[str, Span] = field(default_factory=dict)


def pattern_names(pattern: str) -> frozenset[str]:
    """The metavariables that a pattern binds: ``$NAME`` and ``$$$NAME``; those that begin with ``_`` bind nothing."""
    return frozenset(name for _, name in VARIABLE.findall(pattern) if not name.startswith("_"))


def by_pattern(source: Source, pattern: str) -> list[Match]:
    """The places that an ast-grep pattern matches, nested ones included.

    Raises RequestError for a pattern that the language cannot read, and for a language without patterns.
    """
    language = source.language.name
    if language in UNKNOWN_TO_AST_GREP:
        raise RequestError(f"there are no structural patterns for {language}; use a query")
    try:
        nodes = SgRoot(source.text, language).root().find_all(pattern=_in_context(pattern, language))
    except RuntimeError as error:
        causes = [line for line in str(error).split("Stack backtrace")[0].splitlines() if line.strip()]
        raise RequestError(f"the pattern is not {language}: {causes[-1].split(':', 1)[-1].strip()}") from error
    if not nodes and _is_broken(pattern, language):
        raise RequestError(f"the pattern is not {language}: {pattern!r} does not parse")
    variables = VARIABLE.findall(pattern)
    return [_pattern_match(source, node, variables) for node in nodes]


def by_query(source: Source, query: str) -> list[Match]:
    """The places that a tree-sitter query matches.

    The node captured as ``@place`` is replaced; text goes in front of ``@before`` or behind ``@after``. A query with
    one capture needs no such name. Every other capture is a metavariable: ``@name`` is ``$NAME``. Raises RequestError.
    """
    found = []
    for captures in source.query(query):
        spans = {name: (nodes[0].start_byte, nodes[-1].end_byte) for name, nodes in captures.items() if nodes}
        found.append(_query_match(spans))
    return found


def query_names(query: str) -> frozenset[str]:
    """The metavariables that a query binds."""
    return frozenset(name.upper() for name in re.findall(r"@([A-Za-z_]\w*)", query))


def by_ranges(source: Source, spans: Sequence[Span]) -> list[Match]:
    """The ranges themselves; raises RequestError where two overlap."""
    ordered = sorted(spans)
    for before, after in pairwise(ordered):
        if after[0] < before[1] or after == before:
            line, column = source.position(after[0])
            raise RequestError(f"the ranges of {source.path} overlap at {line}:{column}")
    return [Match(start, end, {WHOLE: (start, end)}) for start, end in ordered]


def span(node: Node) -> Span:
    """The bytes of a tree-sitter node."""
    return node.start_byte, node.end_byte


def _pattern_match(source: Source, node: SgNode, variables: Sequence[tuple[str, str]]) -> Match:
    start, end = _span(source, node)
    captures = {WHOLE: (start, end)}
    for sigil, name in variables:
        if sigil == "$$$":
            nodes = node.get_multiple_matches(name)
            captures[name] = (_span(source, nodes[0])[0], _span(source, nodes[-1])[1]) if nodes else (start, start)
        elif (bound := node.get_match(name)) is not None:
            captures[name] = _span(source, bound)
    return Match(start, end, captures)


def _query_match(spans: dict[str, Span]) -> Match:
    roles = [role for role in ROLES if role in spans] or (list(spans) if len(spans) == 1 else [])
    if len(roles) != 1:
        raise RequestError("the query needs one capture named @place, @before or @after")
    start, end = spans[roles[0]]
    captures = {name.upper(): span for name, span in spans.items()} | {WHOLE: (start, end)}
    start, end = {"before": (start, start), "after": (end, end)}.get(roles[0], (start, end))
    return Match(start, end, captures)


def _span(source: Source, node: SgNode) -> Span:
    place = node.range()
    return source.offset(place.start.index), source.offset(place.end.index)


def _in_context(pattern: str, language: str) -> str | Pattern:
    """The pattern as ast-grep wants it: where it reads otherwise on its own than in a function, in one."""
    if language not in CONTEXTS:
        return pattern
    context = CONTEXTS[language].replace("PATTERN", pattern)
    start = CONTEXTS[language].index("PATTERN")
    names = VARIABLE.sub(lambda variable: "x" * len(variable[0]), context)
    node = SgRoot(names, language).root()
    while (node.range().start.index, node.range().end.index) != (start, start + len(pattern)):
        around = (child for child in node.children() if child.range().start.index <= start < child.range().end.index)
        inner = next(around, None)
        if inner is None:  # several statements, or a definition, which stand on their own
            return pattern
        node = inner
    return {"context": context, "selector": node.kind(), "strictness": "smart"}


def _is_broken(pattern: str, language: str) -> bool:
    """Whether a pattern has a syntax error, its metavariables taken for names."""
    return SgRoot(VARIABLE.sub("x", pattern), language).root().find(kind="ERROR") is not None
