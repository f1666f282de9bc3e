"""Makes a rewritten place fit: the code around it is read as before, and each of its pieces is what it was.

A text can parse and mean something else: ``a + b`` put before ``* 2``, or a second statement behind an ``if`` without
braces. So the file is parsed with the new text of the place. Where the trees differ around the place, or where a piece
is no longer a node, brackets or braces are put around it. Where that does not help either, the place is left out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from tree_sitter import Node, Tree

from lacuna_model.languages.parsing import UnparsableError, edited
from lacuna_server.refactor.places.pattern import TEXTS, written_children
from lacuna_server.refactor.places.source import Source, same_span
from lacuna_server.refactor.rewriting.operands import needs_brackets
from lacuna_server.refactor.rewriting.rewrite import Excerpts, LeftOut, Part, Rewrite

REASON = "with the template, the code in or around this place would be read otherwise; not changed"
BROKEN = "with the template, the code at this place does not parse; not changed"
# What stands for a hole until it is filled.
FILLED = "x"
# Languages without operators, and those without brackets around an expression.
PLAIN = frozenset(("html", "css", "json", "yaml", "toml"))
UNBRACKETED = PLAIN | {"bash"}
# Languages in which brackets may hold several statements.
GROUPED = frozenset(("ruby",))
BRACED = frozenset(("javascript", "typescript", "tsx", "c", "cpp", "csharp", "java", "php"))
# Nodes that have one statement as their body.
HEADERS = re.compile(r"^((if|for|for_in|foreach|enhanced_for|while|do|with|for_range)_(statement|loop)|else_clause)$")
# In Kotlin a body stands beside the condition, behind one of these.
KOTLIN_HEADERS = re.compile(r"^(if_expression|(for|while|do_while)_statement|when_entry)$")
BEFORE_BODY = frozenset((")", "else", "do", "->"))
# Nodes that mean something else outside a list of arguments, elements or results.
LISTED = re.compile(r"keyword_arg|named_arg|^argument$|splat|spread|labeled|expression_list|pattern_list")
TUPLES = re.compile(r"tuple|parenthesized|sequence")
# What braces with statements are not: values in braces.
VALUES = re.compile(r"^(lambda_literal|object|hash|table_constructor|set|dictionary|literal_value)$|initializer")
TOKENS = "token_tree"
_END = re.compile(rb"\s*;?\s*")
# What a run of nodes may have at its end.
ENDS = b",; \t\r\n"
OPENERS, CLOSERS = tuple(b"([{,;"), tuple(b")]},;")


@dataclass(frozen=True, slots=True)
class PieceSpan:
    """The parts ``first``..``last`` of a rewrite hold a piece, the bytes ``start``..``end`` of the file."""

    first: int
    last: int
    start: int
    end: int
    many: bool


class _Verdict(NamedTuple):
    """What is wrong with a text: the indices of pieces, and what is around them; ``listed``: it is no single node;
    ``broken``: the file has a new error."""

    pieces: frozenset[int] = frozenset()
    around: bool = False
    listed: bool = False
    broken: bool = False


class Fitting:
    """Fits the places of one file."""

    def __init__(self, source: Source) -> None:
        self._file = source
        self._parser = source.language.parser()
        self._excerpts = Excerpts(source)
        self._source = source  # what is parsed: the excerpt for a place

    def fitted(self, rewrite: Rewrite, pieces: Sequence[PieceSpan]) -> Rewrite | LeftOut:
        """Returns the rewrite, with brackets or braces where they are needed; LeftOut where they do not help."""
        try:
            self._source, moved = self._excerpts.around(rewrite.start, rewrite.end)
            near = [replace(piece, start=piece.start - moved, end=piece.end - moved) for piece in pieces]
            found = self._fitted(rewrite.moved(-moved), near)
        except UnparsableError as error:
            return LeftOut(rewrite.start, str(error))
        return found.moved(moved) if isinstance(found, Rewrite) else LeftOut(rewrite.start, found)

    def _fitted(self, rewrite: Rewrite, pieces: Sequence[PieceSpan]) -> Rewrite | str:
        """Returns the rewrite as it fits, or the reason why it does not."""
        language = self._source.language.name
        same = not rewrite.holes and rewrite.filled(()) == self._source.slice(rewrite.start, rewrite.end)
        if rewrite.start == rewrite.end or same:
            return rewrite
        if language in PLAIN:
            pieces = ()
        bracketed, everything = frozenset[int](), frozenset((len(pieces),))
        first = verdict = self._verdict(rewrite, pieces, bracketed)
        while rewrite.parts and any(verdict) and language not in UNBRACKETED:
            more = _inmost(verdict.pieces - bracketed, pieces)
            if not more and verdict.broken:
                more = self._mending(rewrite, pieces, bracketed)
            if not more and self._is_one(rewrite.parts):
                more = everything - bracketed
            if not more:
                break
            bracketed |= more
            verdict = self._verdict(rewrite, pieces, bracketed)
        if not any(verdict):
            return replace(rewrite, parts=_written(rewrite.parts, pieces, bracketed)[0])
        if (block := self._as_block(rewrite)) and not any(self._verdict(block, (), frozenset())):
            return block
        if rewrite.holes or (first.listed and not (first.around or first.pieces or first.broken)):
            return rewrite  # whether the file stays sound is judged when the place is filled
        return BROKEN if first.broken else REASON

    def _mending(self, rewrite: Rewrite, pieces: Sequence[PieceSpan], bracketed: frozenset[int]) -> frozenset[int]:
        """Returns one more piece, or all, with brackets around which the file is not broken; none without any.

        What breaks it, as ``-`` before a ``lambda`` of Python or ``.b`` behind a string of Lua, may be no piece then.
        """
        single = frozenset(index for index, piece in enumerate(pieces) if not piece.many) - bracketed
        ways = [*(frozenset((index,)) for index in sorted(single)), single]
        whole = (way for way in ways if way and not self._verdict(rewrite, pieces, bracketed | way).broken)
        return next(whole, frozenset())

    def _is_one(self, parts: Sequence[Part]) -> bool:
        """Returns whether a text is not several statements, or brackets may hold these."""
        if self._source.language.name in GROUPED:
            return True
        root = self._parser.parse("".join(_texts(parts)).encode()).root_node
        return root.has_error or len([child for child in _code(root) if child.is_named]) < 2

    def _as_block(self, rewrite: Rewrite) -> Rewrite | None:
        """Returns the rewrite of the whole statement with braces, in Python on lines of its own.

        None where it is not the only one of a header.
        """
        source = self._source
        top, run = _around(source.tree, rewrite.start, rewrite.end, source.data)
        if len(run) != 1 or not _is_body(top, run[0], source.language.name):
            return None
        own_lines = source.language.name == "python"
        end = max(source.behind_comment(run[0].end_byte) if own_lines else run[0].end_byte, rewrite.end)
        indent, newline, rest = source.indent_at(rewrite.start), self._file.newline, source.slice(rewrite.end, end)
        inner = newline + indent + self._file.indent_unit
        parts = [part.replace(newline + indent, inner) if isinstance(part, str) else part for part in rewrite.parts]
        if own_lines:
            before = source.lead(rewrite.start)
            start = rewrite.start - len(before) + len(before.rstrip(" \t"))
            return replace(rewrite, start=start, end=end, parts=(inner, *parts, rest))
        return replace(rewrite, end=end, parts=(f"{{{inner}", *parts, f"{rest}{newline}{indent}}}"))

    def _verdict(self, rewrite: Rewrite, pieces: Sequence[PieceSpan], bracketed: frozenset[int]) -> _Verdict:
        """Judges the text of a place with brackets around some pieces, the last of which is all of it."""
        parts, spans = _written(rewrite.parts, pieces, bracketed)
        texts = [text.encode() for text in _texts(parts)]
        offsets = list(accumulate(map(len, texts), initial=rewrite.start))
        text, made = self._source.data, b"".join(texts)
        before, replaced = text[: rewrite.start], text[rewrite.start : rewrite.end]
        data = before + made + text[rewrite.end :]
        tree = self._parser.parse(data, edited(self._source.tree, before, replaced, made))
        wrong = frozenset(
            index
            for index, (piece, (first, last)) in enumerate(zip(pieces, spans, strict=False))
            if not self._keeps(piece, tree, data, offsets[first], offsets[last], bracketed=index in bracketed)
        )
        old, old_run = _around(self._source.tree, rewrite.start, rewrite.end, text)
        new, run = _around(tree, rewrite.start, offsets[-1], data)
        refused = len(run) == 1 and needs_brackets(run[0], self._source.language.name)
        is_gone = not run and data[rewrite.start : offsets[-1]].strip()
        around = bool(refused or is_gone) or not _is_same_around(old, old_run, new, run, rewrite, offsets[-1])
        several = len(old_run) == 1 and len(run) > 1 and any(not node.is_named and node.type != ";" for node in run)
        broken = tree.root_node.has_error > self._source.tree.root_node.has_error
        return _Verdict(wrong, around, several and not around, broken)

    def _keeps(self, piece: PieceSpan, tree: Tree, data: bytes, start: int, end: int, *, bracketed: bool) -> bool:
        """Returns whether a piece of the file is a node, or a run of nodes, of the new text as well."""
        start, end = _trimmed(tree, data, start, end)
        if piece.many:
            end = start + len(data[start:end].rstrip(ENDS))
        node = tree.root_node.descendant_for_byte_range(start, end)
        if start >= end or node is None:
            return start >= end
        if TEXTS.search(node.type) or "comment" in node.type:  # the template has the piece in a string
            return True
        exact = node.byte_range == (start, end)
        if node.type == TOKENS or (exact and node.parent is not None and node.parent.type == TOKENS):
            before, after = data[:start].rstrip()[-1:], data[end:].lstrip()[:1]
            return exact or (before[0] in OPENERS and after[0] in CLOSERS)
        was = self._whole(piece)
        listed = frozenset(
            one.type
            for one in was
            if LISTED.search(one.type) and (one.child_count > 1 or not one.type.endswith(("_list", "argument")))
        )
        if exact:
            now = same_span(node)
            is_block = bool(was) and self._source.data.startswith(b"{", piece.start) and not _has_values(was)
            if needs_brackets(node, self._source.language.name) or (is_block and _has_values(now)):
                return False
            return not listed or (any(one.type in listed for one in now) and not bracketed)
        if bracketed and TUPLES.search(node.type) and node.byte_range == (start - 1, end + 1):
            return True
        spans = [child.byte_range for child in node.children]  # those of markup begin and end with blanks
        begins = any(first <= start and not data[first:start].strip() for first, _ in spans)
        return piece.many and begins and any(end <= last and not data[end:last].strip(ENDS) for _, last in spans)

    def _whole(self, piece: PieceSpan) -> list[Node]:
        """Returns the nodes of the file that a piece for one node is."""
        node = self._source.tree.root_node.descendant_for_byte_range(piece.start, piece.end)
        return same_span(node) if not piece.many and node and node.byte_range == (piece.start, piece.end) else []


def _is_same_around(
    old: Node, old_run: Sequence[Node], new: Node, run: Sequence[Node], rewrite: Rewrite, end: int
) -> bool:
    """Returns whether the tree around the place is as it was; ``run`` are the nodes of the place, up to ``end``."""
    if len(_code(old)) - len(old_run) != len(_code(new)) - len(run):
        return False
    if old.type != new.type or any(node.has_error for node in run) > any(node.has_error for node in old_run):
        return False
    while old.parent is not None and new.parent is not None:
        same_start = old.start_byte >= rewrite.start or old.start_byte == new.start_byte
        same_end = old.end_byte <= rewrite.end or old.end_byte - rewrite.end == new.end_byte - end
        if not (same_start and same_end and old.has_error >= new.has_error):
            return False
        old, new = old.parent, new.parent
        if old.type != new.type or (old.child_count != new.child_count and len(_code(old)) != len(_code(new))):
            return False
    return old.parent is None and new.parent is None


def _is_body(header: Node, node: Node, language: str) -> bool:
    """Returns whether a node is a statement that stands behind a header without braces, or on its line."""
    if language == "kotlin":
        before = node.prev_sibling
        return bool(KOTLIN_HEADERS.search(header.type)) and before is not None and before.type in BEFORE_BODY
    if language == "python":
        block = header if header.type == "block" else node  # which has the comment at the end of the line
        before = block.prev_sibling
        beside = before is not None and before.end_point.row == block.start_point.row
        return block.type == "block" and beside and len(_code(block)) == 1
    return language in BRACED and bool(HEADERS.search(header.type))


def _texts(parts: Sequence[Part]) -> list[str]:
    return [part if isinstance(part, str) else FILLED for part in parts]


def _written(
    parts: Sequence[Part], pieces: Sequence[PieceSpan], bracketed: frozenset[int]
) -> tuple[tuple[Part, ...], list[tuple[int, int]]]:
    """Returns the parts with brackets, and where each piece, without brackets of its own, is in them.

    Behind the pieces, all of the place is one more.
    """
    spans = [*((piece.first, piece.last) for piece in pieces), (0, len(parts))]
    out = list[Part]()
    begun, ended = dict[int, int](), dict[int, int]()
    for number in range(len(parts) + 1):
        for index in sorted((i for i, one in enumerate(spans) if one[1] == number), key=lambda i: -spans[i][0]):
            ended[index] = len(out)
            out += [")"] * (index in bracketed)
        opened = [index for index, one in enumerate(spans) if one[0] == number]
        for index in sorted(opened, key=lambda i: (-spans[i][1], -i)):  # a piece follows the pieces within it
            out += ["("] * (index in bracketed)
            begun[index] = len(out)
        out += parts[number : number + 1]
    return tuple(out), [(begun[index], ended[index]) for index in range(len(spans))]


def _trimmed(tree: Tree, data: bytes, start: int, end: int) -> tuple[int, int]:
    """Returns a span without blanks and comments at its ends."""
    while True:
        text = data[start:end]
        start, end = start + len(text) - len(text.lstrip()), end - (len(text) - len(text.rstrip()))
        if start >= end:
            return start, max(start, end)
        first = tree.root_node.descendant_for_byte_range(start, start + 1)
        last = tree.root_node.descendant_for_byte_range(end - 1, end)
        if first is not None and "comment" in first.type and first.end_byte <= end:
            start = first.end_byte
        elif last is not None and "comment" in last.type and last.start_byte >= start:
            end = last.start_byte
        else:
            return start, end


def _inmost(indices: frozenset[int], pieces: Sequence[PieceSpan]) -> frozenset[int]:
    """Returns those of the pieces that have none of the others within them; an inner piece precedes the outer one."""

    def is_within(inner: int, outer: int) -> bool:
        one, other = pieces[inner], pieces[outer]
        return inner < outer and other.first <= one.first and one.last <= other.last

    return frozenset(index for index in indices if not any(is_within(other, index) for other in indices))


def _around(tree: Tree, start: int, end: int, data: bytes) -> tuple[Node, list[Node]]:
    """Returns the inmost node that is more than a place, and those of its children that are the place.

    A ``;`` directly behind the place and the blanks there count as a part of it.
    """
    behind = _END.match(data, end)
    loose = behind.end() if behind else end
    first, last = _trimmed(tree, data, start, end)
    node = tree.root_node.descendant_for_byte_range(first, last) or tree.root_node
    while node.parent is not None and start <= node.start_byte and node.end_byte <= loose:
        node = node.parent
    return node, [child for child in _code(node) if start <= child.start_byte < end and child.end_byte <= loose]


def _code(node: Node) -> list[Node]:
    """Returns the children of a node that are no comments."""
    return [child for child in written_children(node) if "comment" not in child.type]


def _has_values(nodes: Sequence[Node]) -> bool:
    return any(VALUES.search(node.type) for node in nodes)
