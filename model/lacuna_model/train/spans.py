"""Spans of text to fill, of the kinds that an editor asks for."""

import random

import tree_sitter

from lacuna_model.train.languages import has_grammar, parser_of

Span = tuple[int, int]
# The largest syntax node that is cut out, in bytes: about the largest block of slots.
_NODE_BYTES = 64


def draw_spans(text: str, count: int, rng: random.Random, *, language: str = "", nodes: float = 0.0) -> list[Span]:
    """Up to ``count`` disjoint character spans, in order, at least one character of text between them.

    ``nodes`` is the share of spans that are syntax nodes, where there is a grammar for ``language``.
    """
    tree = parser_of(language).parse(text.encode()) if nodes and has_grammar(language) else None
    spans: list[Span] = []
    for _ in range(count * 2):
        drawn = _draw_node(tree, text, rng) if tree and rng.random() < nodes else None
        begin, end = drawn or _draw_span(text, rng)
        if end <= len(text) and all(end < other_begin or begin > other_end for other_begin, other_end in spans):
            spans.append((begin, end))
        if len(spans) == count:
            break
    return sorted(spans)


def _draw_span(text: str, rng: random.Random) -> Span:
    at = rng.randrange(len(text)) if text else 0
    line_start = text.rfind("\n", 0, at) + 1
    line_end = _line_end(text, at)
    kind = rng.random()
    if kind < 0.35:  # from the cursor to the end of its line
        return at, line_end
    if kind < 0.60:  # the whole line, with or without its indentation and newline
        indent = len(text[line_start:line_end]) - len(text[line_start:line_end].lstrip())
        return (line_start, line_end + 1) if rng.random() < 0.5 else (line_start + indent, line_end)
    if kind < 0.78:  # from somewhere to the end of a later line
        end = line_end
        for _ in range(rng.randint(1, 4)):
            end = _line_end(text, end + 1)
        return (line_start if rng.random() < 0.5 else at), end
    if kind < 0.96:  # some characters, as a selection
        return at, at + rng.randint(1, 48)
    return at, at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _draw_node(tree: tree_sitter.Tree, text: str, rng: random.Random) -> Span | None:
    """A named node around some character: an argument, an expression, a statement; None where all are too large."""
    data = text.encode()
    at = rng.randrange(max(1, len(data)))
    node = tree.root_node.named_descendant_for_byte_range(at, at)
    around: list[Span] = []
    while node is not None and 0 < node.end_byte - node.start_byte <= _NODE_BYTES:
        around.append((node.start_byte, node.end_byte))
        node = node.parent
    if not around:
        return None
    begin, end = rng.choice(around)
    return len(data[:begin].decode()), len(data[:end].decode())
