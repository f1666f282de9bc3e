"""Finds the places of a pattern in a parse tree.

A place has all tokens of the pattern in the same structure. It may have comments, separators at the end of a list, and
tokens that the pattern does not name, such as ``async``; these are in no piece and no token of the pattern.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from tree_sitter import Node, Query, QueryCursor, Tree

from lacuna_model.syntax import Language
from lacuna_server.refactor.places.pattern import (
    LISTS,
    SEPARATORS,
    ParsedPattern,
    PatternNode,
    between,
    written_children,
)
from lacuna_server.refactor.places.source import is_comment

Span: TypeAlias = tuple[int, int]
# The name of all of a place.
WHOLE = "MATCH"

CLOSERS = frozenset((")", "]", "}", ">", "|"))
# Nodes whose meaning a comma at the end changes.
COUNTING = frozenset(("subscript", "tuple", "expression_list", "pattern_list"))
# What may follow in a node that begins as the pattern does; it stays, or the place is left out.
CLAUSES = re.compile(r"clause|else|catch|finally|block|lambda")
# Languages in which a line end ends a statement as ``;`` does.
LINE_ENDED = frozenset(("bash", "kotlin", "lua", "python", "ruby"))
# Nodes in which blanks between their children are text.
ELEMENTS = frozenset(("element", "jsx_element"))
# Lists of tokens: what stands between two commas there is one node of code.
TOKENS = "token_tree"


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


# What is matched so far: the tokens and metavariables of the pattern, each with its span in the text.
State: TypeAlias = tuple[tuple[PatternNode, Span], ...]
Step: TypeAlias = tuple[Sequence[PatternNode], int, State | None]


def find(reading: ParsedPattern, tree: Tree, data: bytes, language: Language) -> list[PatternMatch]:
    """Returns the places of a reading in the tree of ``data``, including nested ones, in the order of the text."""
    matcher, found = _Matcher(data, line_ended=language.name in LINE_ENDED), []
    for node in _candidates(reading.roots[0], tree, language):
        state = matcher.place(reading.roots, node)
        if state is not None and (place := _found(state, node, data, alone=len(reading.roots) == 1)):
            found.append(place)
    return found


def _candidates(root: PatternNode, tree: Tree, language: Language) -> list[Node]:
    kind = "(_)" if root.variable else f"({root.kind})" if root.named else f'"{root.kind}"'
    captures = QueryCursor(_query(language, kind)).captures(tree.root_node)
    return sorted(captures.get("place", ()), key=lambda node: (node.start_byte, -node.end_byte))


@cache
def _query(language: Language, kind: str) -> Query:
    return Query(language.grammar(), f"{kind} @place")


def _found(state: State, node: Node, data: bytes, *, alone: bool) -> PatternMatch | None:
    """Returns the place of what was matched from ``node`` on, which is the whole place if it is ``alone``."""
    tokens = [(leaf, span) for leaf, span in state if not leaf.supplied]
    shown = [span for _, span in tokens if span[0] < span[1]]
    if not shown:
        return None
    captures = {leaf.variable: span for leaf, span in tokens if leaf.variable and leaf.variable[0] != "_"}
    spans = tuple(((leaf.start, leaf.end), span) for leaf, span in tokens)
    end = shown[-1][1]
    if alone and data[end : node.end_byte].strip(b" \t\r\n;,"):
        end = node.end_byte
    captures[WHOLE] = node.start_byte, end
    return PatternMatch(node.start_byte, end, captures, spans, node.has_error or _within_error(node))


def _within_error(node: Node) -> bool:
    """Returns whether a node is in an error, at an end of what was read there: what stands beside may belong to it."""
    part, around = node, node.parent
    while around is not None and not around.is_error:
        part, around = around, around.parent
    return around is not None and (part.start_byte == node.start_byte or part.end_byte == node.end_byte)


class _Matcher:
    """Matches pattern nodes against the nodes of one text."""

    def __init__(self, data: bytes, *, line_ended: bool) -> None:
        self._data, self._line_ended = data, line_ended
        self._siblings: dict[int, tuple[list[Node], dict[int, int]]] = {}

    def place(self, roots: Sequence[PatternNode], node: Node) -> State | None:
        """Returns what was matched where the pattern begins with ``node``."""
        if len(roots) == 1:
            return self._node(roots[0], node, (), whole=True)
        parent = node.parent
        siblings, indices = self._beside(parent) if parent is not None else ([], {})
        if parent is None or node.id not in indices:  # a node without text, which the parser has supplied
            return None
        return self._list(roots, siblings, indices[node.id], parent, (), open_end=True)

    def _beside(self, parent: Node) -> tuple[list[Node], dict[int, int]]:
        """Returns the children of a node, and the index of each by its id."""
        if parent.id not in self._siblings:
            children = written_children(parent)
            self._siblings[parent.id] = children, {child.id: index for index, child in enumerate(children)}
        return self._siblings[parent.id]

    def _node(self, wanted: PatternNode, node: Node, state: State, *, whole: bool = False) -> State | None:
        """Matches one node; where it is the ``whole`` pattern, further clauses may follow in it."""
        if wanted.variable:
            named = node.is_named and not is_comment(node)
            return self._bound(wanted, node.start_byte, node.end_byte, state) if named or wanted.sigil == "$$" else None
        if wanted.kind != node.type:
            return None
        if not wanted.children:
            same = self._data[node.start_byte : node.end_byte] == wanted.text.encode()
            return (*state, (wanted, (node.start_byte, node.end_byte))) if same else None
        children = written_children(node)
        if between(node, children, self._data) != wanted.text:
            return None
        found = self._list(wanted.children, children, 0, node, state)
        if found is None and whole:
            found = self._list(wanted.children, children, 0, node, state, open_end=True)
            after = [child for child in children if found and child.start_byte >= found[-1][1][1]]
            return found if after and (not after[0].is_named or CLAUSES.search(after[0].type)) else None
        return found

    def _bound(self, wanted: PatternNode, start: int, end: int, state: State) -> State | None:
        """Binds a metavariable; None where the same name is bound to another text."""
        if wanted.variable[0] != "_":
            for leaf, span in state:
                if leaf.variable == wanted.variable and self._data[slice(*span)] != self._data[start:end]:
                    return None
        return (*state, (wanted, (start, end)))

    def _list(
        self,
        wanted: Sequence[PatternNode],
        nodes: Sequence[Node],
        at: int,
        parent: Node,
        state: State,
        *,
        open_end: bool = False,
    ) -> State | None:
        """Matches the children ``nodes`` of ``parent`` from the index ``at`` on; ``open_end``: more may follow."""
        if not wanted:
            rest_passes = open_end or all(self._passes(nodes, index, parent) for index in range(at, len(nodes)))
            return state if rest_passes else None
        steps = self._many if wanted[0].many else self._one
        for left, end, here in steps(wanted, nodes, at, parent, state):
            if here is not None:
                found = self._list(left, nodes, end, parent, here, open_end=open_end)
                if found is not None:
                    return found
        return None

    def _one(
        self, wanted: Sequence[PatternNode], nodes: Sequence[Node], at: int, parent: Node, state: State
    ) -> Iterator[Step]:
        """Yields how the match of a list may go on: the pattern that is left, the next index, and what is matched."""
        first, rest = wanted[0], wanted[1:]
        if at < len(nodes):
            yield rest, at + 1, self._node(first, nodes[at], state)
            if parent.type == TOKENS and first.variable and nodes[at].type not in SEPARATORS:
                for end in range(at + 2, len(nodes) + 1):
                    if nodes[end - 1].type in SEPARATORS | CLOSERS:
                        break
                    yield rest, end, self._bound(first, nodes[at].start_byte, nodes[end - 1].end_byte, state)
            if self._passes(nodes, at, parent):
                yield wanted, at + 1, state
        if self._may_lack(first, rest):
            yield rest, at, state
        elif LISTS.search(first.kind) and len(first.children) == 1 and first.children[0].many:
            begun = state[-1][1][1] if state else parent.start_byte
            yield rest, at, self._bound(first.children[0], begun, begun, state)

    def _many(
        self, wanted: Sequence[PatternNode], nodes: Sequence[Node], at: int, parent: Node, state: State
    ) -> Iterator[Step]:
        """Yields the same where any number of nodes comes first."""
        first, rest = wanted[0], wanted[1:]
        for stop in self._stops(rest[0].text if rest else "", nodes, at, ends=not rest):
            start = nodes[at].start_byte if at < len(nodes) else parent.end_byte
            if stop == at and state:
                start = state[-1][1][1]
            end = nodes[stop - 1].end_byte if stop > at else start
            if parent.type in ELEMENTS and state and stop < len(nodes):
                start, end = state[-1][1][1], nodes[stop].start_byte
            left = rest[1:] if stop == at and rest and rest[0].text in SEPARATORS else rest
            yield left, stop, self._bound(first, start, end, state)

    def _stops(self, wants: str, nodes: Sequence[Node], at: int, *, ends: bool) -> Iterator[int]:
        """Yields the indices at which any number of nodes from ``at`` on may end, the shortest run first.

        A run has the separator and the comments that follow it, unless the pattern ``wants`` that separator next; where
        the pattern ``ends`` with it, it has no ``;`` of what is around it. Other indices come last.
        """
        later = []
        for index in range(at, len(nodes) + 1):
            after = nodes[index] if index < len(nodes) else None
            outer = ends and after is not None and index == len(nodes) - 1 and after.type == ";"
            separated = after is not None and after.type in SEPARATORS and after.type != wants
            if after is not None and not outer and (is_comment(after) or separated):
                later.append(index)
            else:
                yield index
        yield from later

    def _passes(self, nodes: Sequence[Node], index: int, parent: Node) -> bool:
        """Returns whether a node may stand in a place although the pattern does not have it."""
        node = nodes[index]
        if node.is_named:
            return is_comment(node) or node.is_error
        if node.type == ",":
            others = (nodes[at] for at in range(index + 1, len(nodes)) if not is_comment(nodes[at]))
            following = next(others, None)
            return parent.type not in COUNTING and (following is None or following.type in CLOSERS)
        return True

    def _may_lack(self, first: PatternNode, rest: Sequence[PatternNode]) -> bool:
        """Returns whether a place may lack a separator of the pattern: at the end, or before no nodes."""
        if first.text not in SEPARATORS or first.named:
            return False
        at_end = first.text == ";" and (self._line_ended or not rest)
        return at_end or first.supplied or (bool(rest) and rest[0].many)
