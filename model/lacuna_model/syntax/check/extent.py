"""Extents: the ranges of lines that a gap's syntax depends on, found in the text and proved by a parse.

The tree of a file with gaps is no guide, so borders are searched in the text, at lines of equal indentation. A parse of
the skeleton proves them: the document with each extent replaced by one plain statement. Where that statement is parsed
as a statement of its own, any text that parses on its own may stand too.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tree_sitter import Node, Tree

from lacuna_model.languages.language import Language
from lacuna_model.syntax.text.columns import open_lines
from lacuna_model.syntax.text.literals import Literals, find_literals, open_comment, open_quote

SMALL = 3000
GROWTHS = 4
# A line that begins like this continues the statement above it.
CONTINUATION = re.compile(
    rb"(?:else|elif|except|finally|catch|case|default|then|do|done|fi|esac|end|while)\b|[)\]{}\"'`.&|?:*/+-]"
    rb"|#(?![ \t]*(?:include|define|undef|pragma)\b)"  # other directives end, and elsewhere it is a comment
    rb"|(?!try\b)\w+:\s*\Z"  # a label
)
# A line that begins like this belongs to the statement below it.
LEADING = re.compile(rb"[ \t]*(?:@|template\b[^;{]*\Z)")
# These do not change how whole declarations in them are parsed: an include guard, a namespace, `extern "C"`.
TRANSPARENT = frozenset(
    [f"preproc_{name}" for name in ("if", "ifdef", "elif", "elifdef", "else")]
    + ["linkage_specification", "namespace_definition", "declaration_list"]
)


class Extent(NamedTuple):
    """A byte range of whole lines, none indented less than ``column``, with the gaps ``first``..``last``."""

    first: int
    last: int
    begin: int
    stop: int
    column: int


def find_extents(text: bytes, gaps: Sequence[tuple[int, int]], language: Language) -> tuple[list[Extent], Tree | None]:
    """Return extents over all gaps of a document, and the tree of its skeleton.

    There are no extents if no part of the document can be separated.
    """
    if not language.splits:
        return [], None
    borders = _Borders(text, gaps, language)
    extents = _merged([borders.extent(index, index) for index in range(len(gaps))], borders)
    for _ in range(GROWTHS):
        grown, rest = _proved(text, extents, language)
        if grown == extents:
            return extents, rest
        extents = _united(grown)
    return [], None


def _merged(extents: list[Extent], borders: "_Borders") -> list[Extent]:
    """The extents, with overlapping ones searched again as one."""
    for place in range(1, len(extents)):
        if extents[place].begin < extents[place - 1].stop:
            joint = borders.extent(extents[place - 1].first, extents[place].last)
            return _merged([*extents[: place - 1], joint, *extents[place + 1 :]], borders)
    return extents


def _united(extents: Sequence[Extent]) -> list[Extent]:
    """The extents, with overlapping ones united to the range that they cover."""
    united = [extents[0]]
    for extent in extents[1:]:
        before = united[-1]
        if extent.begin < before.stop:
            united[-1] = Extent(before.first, extent.last, before.begin, max(before.stop, extent.stop), 0)
        else:
            united.append(extent)
    return united


def _proved(text: bytes, extents: Sequence[Extent], language: Language) -> tuple[list[Extent], Tree]:
    """Each extent unchanged if the skeleton's statement is parsed as one, else grown to the top-level node around it.

    Also returns the skeleton's tree.
    """
    content, places = skeleton(text, extents, language)
    filler = language.lexicon.filler
    tree = language.parser().parse(content)
    root = tree.root_node
    proved = []
    for extent, place in zip(extents, places, strict=True):
        around = _top_level(root, place)
        if _stands(root, place, place + len(filler), nested=extent.column > 0):
            proved.append(extent)
        elif around is None:
            proved.append(Extent(extent.first, extent.last, 0, len(text), 0))
        else:
            shift = extent.begin + extent.column - place
            stretch = (extent.stop - extent.begin) - (extent.column + len(filler) + 1)
            begin = min(around.start_byte + shift, extent.begin)
            stop = max(around.end_byte + shift + stretch, extent.stop)
            proved.append(_in_whole_lines(text, extent, max(begin, 0), min(stop, len(text))))
    return proved, tree


def skeleton(text: bytes, extents: Sequence[Extent], language: Language) -> tuple[bytes, list[int]]:
    """The text with one plain statement in place of each extent, and the offsets of these statements."""
    parts: list[bytes] = []
    places: list[int] = []
    offset = size = 0
    for extent in extents:
        indent = text[extent.begin : extent.begin + extent.column]
        parts += [text[offset : extent.begin], indent + language.lexicon.filler + b"\n"]
        size += extent.begin - offset
        places.append(size + len(indent))
        size += len(parts[-1])
        offset = extent.stop
    return b"".join([*parts, text[offset:]]), places


def _in_whole_lines(text: bytes, extent: Extent, begin: int, stop: int) -> Extent:
    newline = text.find(b"\n", max(stop - 1, 0))
    stop = len(text) if newline < 0 else newline + 1
    return Extent(extent.first, extent.last, text.rfind(b"\n", 0, begin) + 1, stop, 0)


def _stands(root: Node, start: int, end: int, *, nested: bool) -> bool:
    """Whether a statement covers exactly these bytes, at the top level or, if ``nested``, in a block.

    Text between ``#if`` and ``#endif``, or in a namespace, is at the top level if these are.
    """
    node = root.descendant_for_byte_range(start, end)
    while node is not None and node.parent is not None and node.parent.start_byte == start:
        if _top(node.parent) == root or node.parent.type == "block":
            break
        node = node.parent
    if node is None or node.start_byte != start or node.end_byte > end + 1 or node.has_error:
        return False
    parent = node.parent
    return parent is not None and (_top(parent) == root or (nested and parent.type == "block")) and not parent.is_error


def _top(node: Node) -> Node:
    """The innermost node around that is not transparent; one without its end does not count as transparent."""
    while node.type in TRANSPARENT and node.parent is not None and not node.children[-1].is_missing:
        node = node.parent
    return node


def _top_level(root: Node, place: int) -> Node | None:
    """The child of the root that covers a byte; None without one, or if the root itself is an error."""
    # Not root.first_child_for_byte: where it finds a hidden node at the end of a text, py-tree-sitter crashes.
    node = root.descendant_for_byte_range(place, place + 1)
    while node is not None and node.parent is not None and node.parent != root:
        node = node.parent
    return None if root.is_error or node is None or node == root else node


class _Borders:
    """Finds the lines where statements of a given indentation begin or end."""

    def __init__(self, text: bytes, gaps: Sequence[tuple[int, int]], language: Language) -> None:
        self._text = text
        self._gaps = gaps
        self._columns = language.columns
        starts = [0, *(end for _, end in gaps)]
        stops = [*(start for start, _ in gaps), len(text)]
        spans: list[tuple[int, int]] = []
        inside = b""
        for index, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            piece = text[start:stop]
            if index:
                inside = open_comment(piece, language.lexicon) or open_quote(piece, language.lexicon)
            found = find_literals(piece, language.lexicon, inside)
            inside = found.inside
            spans += [(start + begin, start + end) for begin, end in found.spans]
        self._literals = Literals(tuple(spans), b"")

    def extent(self, first: int, last: int) -> Extent:
        """The smallest extent that holds the statements around some gaps and their neighbours."""
        text, start, end = self._text, self._gaps[first][0], self._gaps[last][1]
        line = text.rfind(b"\n", 0, start) + 1
        between = [len(lead) for lead in re.findall(rb"\n([ \t]*)\S", text[start:end])]
        deepest = min(between, default=len(text)) if self._columns else 0
        if not text[line:start].strip() and line:  # the indentation of an empty line does not show its block
            line = text.rfind(b"\n", 0, line - 1) + 1
        extent = Extent(first, last, 0, len(text), 0)
        for column in (opened.column for opened in open_lines(text[:start], 0) if opened.column <= deepest):
            begin = self._before(line, column)
            if begin is not None:
                extent = Extent(first, last, begin, self._behind(end, column), column)
            if extent.stop - extent.begin <= SMALL:
                break
        return extent

    def _before(self, line: int, column: int) -> int | None:
        """The start of the statement before the one around a line, or of that one if it is the first of its block.

        None if the line is in no statement of this column.
        """
        text = self._text
        found: int | None = None
        while True:
            stop = text.find(b"\n", line)
            current = text[line : stop if stop >= 0 else len(text)]
            if current.strip() and not self._literals.hold(line):
                if _indent(current) < column:
                    return found
                if _indent(current) == column and not CONTINUATION.match(current, column):
                    line = self._led_in(line, column)
                    if found is not None:
                        return line
                    found = line
            if line == 0:
                return found
            line = text.rfind(b"\n", 0, line - 1) + 1

    def _led_in(self, line: int, column: int) -> int:
        """The start of the statement that begins with a line, including the lines above that belong to it."""
        while line:
            above = self._text.rfind(b"\n", 0, line - 1) + 1
            text = self._text[above : line - 1]
            if _indent(text) != column or not LEADING.match(text) or self._literals.hold(above):
                break
            line = above
        return line

    def _behind(self, position: int, column: int) -> int:
        """The end of the first whole statement after a position."""
        text = self._text
        statements = 0
        leading: int | None = None
        while (newline := text.find(b"\n", position)) >= 0:
            position = newline + 1
            stop = text.find(b"\n", position)
            line = text[position : stop if stop >= 0 else len(text)]
            if not line.strip() or _indent(line) > column or self._literals.hold(position):
                continue
            if _indent(line) < column:
                return position
            if LEADING.match(line):
                leading = position if leading is None else leading
            elif not CONTINUATION.match(line, column):
                statements += 1
                if statements == 2:
                    return position if leading is None else leading
                leading = None
        return len(text)


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))
