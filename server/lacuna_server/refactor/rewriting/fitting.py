"""Makes a rewritten place fit: the code around it is read as before, and each of its pieces is what it was.

A text can parse and mean something else: ``a + b`` put before ``* 2``, or a second statement behind an ``if`` without
braces. So the file is parsed with the new text of the place. Where the trees differ around the place, or where a piece
is no longer a node, brackets or braces are put around it. Where that does not help either, the place is left out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node, Point, Tree

from lacuna_model.languages.parsing import UnparsableError, advance
from lacuna_model.text.lines import splice
from lacuna_server.refactor.places.pattern import TEXTS, written_children
from lacuna_server.refactor.places.source import Source
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

    def moved(self, by: int) -> "PieceSpan":
        """Returns the piece in a list of parts that has so many more before it."""
        return replace(self, first=self.first + by, last=self.last + by)

    def in_text(self, by: int) -> "PieceSpan":
        """Returns the piece in a text that has so many more bytes before it."""
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True)
class _Trial:
    """The parts of a place with brackets around some pieces, and around all of it."""

    parts: tuple[Part, ...]
    bracketed: frozenset[int] = frozenset()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What is wrong with a trial: the indices of pieces, and what is around them; ``listed``: it is no single node;
    ``broken``: the file has a new error."""

    pieces: frozenset[int] = frozenset()
    around: bool = False
    listed: bool = False
    broken: bool = False

    @property
    def good(self) -> bool:
        return not (self.pieces or self.around or self.listed or self.broken)


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
            found = self._fitted(rewrite.moved(-moved), [piece.in_text(-moved) for piece in pieces])
        except UnparsableError as error:
            return LeftOut(rewrite.start, str(error))
        return found.moved(moved)

    def _fitted(self, rewrite: Rewrite, pieces: Sequence[PieceSpan]) -> Rewrite | LeftOut:
        if rewrite.start == rewrite.end:
            return rewrite
        if self._source.language.name in PLAIN:
            pieces = ()
        if not rewrite.holes and rewrite.filled(()) == self._source.slice(rewrite.start, rewrite.end):
            return rewrite
        trial = _Trial(rewrite.parts)
        first = verdict = self._verdict(rewrite, trial, pieces)
        while rewrite.parts and not verdict.good and self._source.language.name not in UNBRACKETED:
            if more := _inmost(verdict.pieces - trial.bracketed, pieces):
                trial = replace(trial, bracketed=trial.bracketed | more)
            elif verdict.broken and (mended := self._mended(rewrite, trial, pieces)):
                trial = mended
            elif not trial.whole and self._is_one(trial.parts):
                trial = replace(trial, whole=True)
            else:
                break
            verdict = self._verdict(rewrite, trial, pieces)
        if verdict.good:
            return replace(rewrite, parts=_written(trial, pieces)[0])
        if (block := self._as_block(rewrite)) and self._verdict(block, _Trial(block.parts), ()).good:
            return block
        if first.broken and not rewrite.holes:
            return LeftOut(rewrite.start, BROKEN)
        if rewrite.holes or (first.listed and not first.around and not first.pieces):
            return rewrite  # whether the file stays sound is judged when the place is filled
        return LeftOut(rewrite.start, REASON)

    def _mended(self, rewrite: Rewrite, trial: _Trial, pieces: Sequence[PieceSpan]) -> _Trial | None:
        """Returns a trial with brackets around one more piece, or all of them, which does not break the file.

        What breaks it, as ``-`` before a ``lambda`` of Python or ``.b`` behind a string of Lua, may be no piece then.
        """
        single = frozenset(index for index, piece in enumerate(pieces) if not piece.many) - trial.bracketed
        for more in [*(frozenset((index,)) for index in sorted(single)), single]:
            mended = replace(trial, bracketed=trial.bracketed | more)
            if more and not self._verdict(rewrite, mended, pieces).broken:
                return mended
        return None

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

    def _verdict(self, rewrite: Rewrite, trial: _Trial, pieces: Sequence[PieceSpan]) -> _Verdict:
        parts, spans = _written(trial, pieces)
        texts = _texts(parts)
        offsets = [rewrite.start]
        for text in texts:
            offsets.append(offsets[-1] + len(text.encode()))
        data = splice(self._source.data, [(rewrite.start, rewrite.end, "".join(texts).encode())])
        tree = self._parsed(rewrite, data, offsets[-1])
        wrong = set()
        for index, (first, last) in enumerate(spans):
            inside = index in trial.bracketed
            if not self._keeps(pieces[index], tree, data, offsets[first], offsets[last], bracketed=inside):
                wrong.add(index)
        around, listed = self._same_around(rewrite, tree, data, offsets[-1])
        broken = tree.root_node.has_error > self._source.tree.root_node.has_error
        return _Verdict(frozenset(wrong), not around, listed, broken)

    def _parsed(self, rewrite: Rewrite, data: bytes, end: int) -> Tree:
        old = self._source.tree.copy()
        original, begin = self._source.data, Point(0, 0)
        points = [advance(begin, text) for text in (original[: rewrite.start], original[: rewrite.end], data[:end])]
        old.edit(rewrite.start, rewrite.end, end, *points)
        return self._parser.parse(data, old)

    def _keeps(self, piece: PieceSpan, tree: Tree, data: bytes, start: int, end: int, *, bracketed: bool) -> bool:
        """Returns whether a piece of the file is a node, or a run of nodes, of the new text as well."""
        start, end = self._code_span(piece, data, start, end)
        if start >= end:
            return True
        node = tree.root_node.descendant_for_byte_range(start, end)
        if node is None:
            return False
        if TEXTS.search(node.type) or "comment" in node.type:  # the template has the piece in a string
            return True
        if node.type == TOKENS or (
            node.parent is not None and node.parent.type == TOKENS and _span(node) == (start, end)
        ):
            before, after = data[:start].rstrip()[-1:], data[end:].lstrip()[:1]
            return _span(node) == (start, end) or (before[0] in OPENERS and after[0] in CLOSERS)
        listed = self._listed(piece)
        if _span(node) == (start, end):
            refused = needs_brackets(node, self._source.language.name)
            if refused or (self._is_block(piece) and any(VALUES.search(kind) for kind in _kinds(node))):
                return False
            return not listed or (bool(_kinds(node) & listed) and not bracketed)
        if bracketed and TUPLES.search(node.type) and _span(node) == (start - 1, end + 1):
            return True
        spans = [_span(child) for child in node.children]  # those of markup begin and end with blanks
        begins = any(first <= start and not data[first:start].strip() for first, _ in spans)
        return piece.many and begins and any(end <= last and not data[end:last].strip(ENDS) for _, last in spans)

    def _code_span(self, piece: PieceSpan, data: bytes, start: int, end: int) -> tuple[int, int]:
        """Returns a piece's span in the new text, without blanks, comments and separators at its ends."""
        text = data[start:end]
        kept = text.rstrip()
        start, text = start + len(text) - len(text.lstrip()), kept.lstrip()
        source = self._source
        comments = [source.data[first:last] for first, last in source.comments_within(piece.start, piece.end)]
        for comment in comments:
            if text.startswith(comment):
                start += len(text) - len(text[len(comment) :].lstrip())
                text = text[len(comment) :].lstrip()
        for comment in reversed(comments):
            text = text.removesuffix(comment).rstrip()
        if piece.many:
            text = text.rstrip(ENDS)
        return start, start + len(text)

    def _is_block(self, piece: PieceSpan) -> bool:
        """Returns whether a piece is statements in braces."""
        kinds = [one.type for one in self._whole(piece)] if self._source.data.startswith(b"{", piece.start) else []
        return bool(kinds) and not any(VALUES.search(kind) for kind in kinds)

    def _listed(self, piece: PieceSpan) -> frozenset[str]:
        """Returns the types of a piece that have to stay."""
        around = [one for one in self._whole(piece) if LISTED.search(one.type)]
        return frozenset(
            one.type for one in around if one.child_count > 1 or not one.type.endswith(("_list", "argument"))
        )

    def _whole(self, piece: PieceSpan) -> list[Node]:
        """Returns the nodes of the file that a piece for one node is."""
        node = self._source.tree.root_node.descendant_for_byte_range(piece.start, piece.end)
        return _same_span(node) if not piece.many and node and _span(node) == (piece.start, piece.end) else []

    def _same_around(self, rewrite: Rewrite, tree: Tree, data: bytes, end: int) -> tuple[bool, bool]:
        """Returns whether the tree around the place is as it was, and whether the place is a list of nodes instead."""
        old, old_run = _around(self._source.tree, rewrite.start, rewrite.end, self._source.data)
        new, run = _around(tree, rewrite.start, end, data)
        moved = end - rewrite.end
        if old.type != new.type or len(_code(old)) - len(old_run) != len(_code(new)) - len(run):
            return False, False
        if any(node.has_error for node in run) > any(node.has_error for node in old_run):
            return False, False
        if len(run) == 1 and needs_brackets(run[0], self._source.language.name):
            return False, False
        if not run and data[rewrite.start : end].strip():
            return False, False
        while old.parent is not None and new.parent is not None:
            same_start = old.start_byte >= rewrite.start or old.start_byte == new.start_byte
            same_end = old.end_byte <= rewrite.end or old.end_byte + moved == new.end_byte
            if not (same_start and same_end and old.type == new.type and old.has_error >= new.has_error):
                return False, False
            old, new = old.parent, new.parent
            if old.type != new.type or (old.child_count != new.child_count and len(_code(old)) != len(_code(new))):
                return False, False
        single = len(old_run) == 1 and len(run) > 1 and any(not node.is_named and node.type != ";" for node in run)
        return old.parent is None and new.parent is None, single


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


def _written(trial: _Trial, pieces: Sequence[PieceSpan]) -> tuple[tuple[Part, ...], list[tuple[int, int]]]:
    """Returns the parts of a trial, and where each piece, without brackets of its own, is in them."""
    out: list[Part] = ["("] * trial.whole
    begun, ended = dict[int, int](), dict[int, int]()
    for number in range(len(trial.parts) + 1):
        for index in sorted((i for i, one in enumerate(pieces) if one.last == number), key=lambda i: -pieces[i].first):
            ended[index] = len(out)
            out += [")"] * (index in trial.bracketed)
        opened = [index for index, one in enumerate(pieces) if one.first == number]
        for index in sorted(opened, key=lambda i: (-pieces[i].last, -i)):  # a piece follows the pieces within it
            out += ["("] * (index in trial.bracketed)
            begun[index] = len(out)
        out += trial.parts[number : number + 1]
    out += [")"] * trial.whole
    return tuple(out), [(begun[index], ended[index]) for index in range(len(pieces))]


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
    return frozenset(
        index
        for index in indices
        if not any(
            pieces[index].first <= pieces[other].first and pieces[other].last <= pieces[index].last and other < index
            for other in indices
        )
    )


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


def _kinds(node: Node) -> frozenset[str]:
    """Returns the types of the nodes with the same span."""
    return frozenset(one.type for one in _same_span(node))


def _same_span(node: Node) -> list[Node]:
    """Returns a node, and those around it that have the same span."""
    found, around = [node], node.parent
    while around is not None and _span(around) == _span(node):
        found.append(around)
        around = around.parent
    return found


def _span(node: Node) -> tuple[int, int]:
    return node.start_byte, node.end_byte
