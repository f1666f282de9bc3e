"""Windows: the stretches of a document that a gap's syntax depends on, each parsed on its own.

A reparse takes time in the number of siblings around an edit, 1 ms in a file of 3,000 lines. Within its statement and
the neighbours of that a fill is checked in 0.1 ms, and gaps in different windows are independent of each other.
Borders are found in the text alone, at lines of one indentation, since the tree of a file with gaps is no guide.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tree_sitter import Parser, Point, Tree

from lacuna_model.syntax.error_set import Fault, tree_faults
from lacuna_model.syntax.indentation import indentation_faults
from lacuna_model.syntax.languages import Language

CHUNK = 1 << 14
# tree-sitter reports progress about once in 200 bytes of a fresh parse; error recovery may take half as long again.
MIN_PROGRESS = 10
BYTES_PER_PROGRESS = 130
SMALL = 3000
ENCLOSING = b"class x:\n"
# A line that begins like this goes on with the statement above it.
CONTINUATION = re.compile(
    rb"(?:else|elif|except|finally|catch|case|default|then|do|done|fi|esac|end|while)\b|[)\]}\"'`#.&|?:*/+-]"
)


class Extent(NamedTuple):
    """A byte range of whole lines, none of them indented less than ``column``."""

    begin: int
    stop: int
    column: int


class Window:
    """A stretch of text (``pieces`` around gaps ``first``..) and the tree of the fills it last held."""

    def __init__(
        self, pieces: Sequence[bytes], first: int, base: Sequence[bytes], language: Language, extent: Extent
    ) -> None:
        self.pieces = tuple(pieces)
        self.first = first
        self.base = tuple(base)
        self.extent = extent
        self._language = language
        self._parser = Parser(language.grammar())
        self.tree = self._parser.parse(self.assemble(self.base))

    @property
    def gaps(self) -> range:
        """The indices of the document's gaps that lie in this window."""
        return range(self.first, self.first + len(self.base))

    def assemble(self, fills: Sequence[bytes]) -> bytes:
        """The window's text with its gaps filled."""
        parts = [self.pieces[0]]
        for fill, piece in zip(fills, self.pieces[1:], strict=True):
            parts += (fill, piece)
        return b"".join(parts)

    def spans(self, fills: Sequence[bytes]) -> list[tuple[int, int]]:
        """The byte range of each fill in the assembled text."""
        spans = []
        offset = 0
        for piece, fill in zip(self.pieces, fills, strict=False):
            offset += len(piece)
            spans.append((offset, offset + len(fill)))
            offset += len(fill)
        return spans

    def parse(self, fills: Sequence[bytes], *, fresh: bool = False) -> tuple[Tree, frozenset[Fault]] | None:
        """A parse and its faults, those of indentation near the fills.

        Unless it is ``fresh``, the parse is incremental and bounded: None where error recovery would take too long.
        """
        edited = self._edited(fills)
        text = self.assemble(fills)
        tree = self._parser.parse(text) if fresh else self._bounded_parse(text, edited)
        if tree is None:
            return None
        faults = tree_faults(tree)
        if self._language.columns:
            changed = [(span.start_byte, span.end_byte) for span in edited.changed_ranges(tree)]
            faults |= indentation_faults(tree, text, self.spans(fills) + changed)
        return tree, faults

    def _bounded_parse(self, text: bytes, old: Tree) -> Tree | None:
        budget = MIN_PROGRESS + len(text) // BYTES_PER_PROGRESS

        def out_of_budget(_offset: int, _has_error: bool) -> bool:
            nonlocal budget
            budget -= 1
            return budget < 0

        def read(offset: int, _point: Point) -> bytes:
            return text[offset : offset + CHUNK]

        for start in (old, None):  # what is reused of a tree full of errors can cost more than it saves
            try:
                return self._parser.parse(read, start, progress_callback=out_of_budget)
            except ValueError:  # how py-tree-sitter reports a parse that its callback stopped
                self._parser.reset()
            if len(text) <= SMALL:
                break
            budget = MIN_PROGRESS + len(text) // BYTES_PER_PROGRESS
        return None

    def _edited(self, fills: Sequence[bytes]) -> Tree:
        """A copy of the base tree, edited right to left so that earlier offsets stay true."""
        tree = self.tree.copy()
        edits = []
        point, offset = Point(0, 0), 0
        for piece, before, after in zip(self.pieces, self.base, fills, strict=False):
            point, offset = _advance(point, piece), offset + len(piece)
            end = _advance(point, before)
            if before != after:
                edits.append((offset, offset + len(before), offset + len(after), point, end, _advance(point, after)))
            point, offset = end, offset + len(before)
        for edit in reversed(edits):
            tree.edit(*edit)
        return tree

    def rebase(self, fills: Sequence[bytes], tree: Tree) -> None:
        """Further parses start from these fills and their tree."""
        self.base, self.tree = tuple(fills), tree

    def may_mislead(self, fills: Sequence[bytes], faults: frozenset[Fault]) -> bool:
        """Whether the window's borders may be to blame: a fault at its end, or a fill that leaves its block."""
        last_line = len(self.assemble(fills).rstrip())
        return any(fault.end >= last_line for fault in faults) or any(
            len(lead) < self.extent.column for fill in fills for lead in re.findall(rb"\n([^\S\n]*)\S", fill)
        )


def _advance(point: Point, text: bytes) -> Point:
    rows = text.count(b"\n")
    column = len(text) - text.rfind(b"\n") - 1 if rows else point.column + len(text)
    return Point(point.row + rows, column)


def narrow_windows(
    text: bytes, gaps: Sequence[tuple[int, int]], base: Sequence[bytes], language: Language
) -> list[Window]:
    """Windows over all gaps of a document, or none where they would not be smaller than the whole."""
    if not language.splits:
        return []
    groups = _grouped(text, [(index, index) for index in range(len(gaps))], gaps, language)
    if sum(extent.stop - extent.begin for _, _, extent in groups) >= len(text):
        return []
    windows = []
    for first, last, extent in groups:
        bounds = [extent.begin, *(offset for gap in gaps[first : last + 1] for offset in gap), extent.stop]
        pieces = [text[bounds[i] : bounds[i + 1]] for i in range(0, len(bounds), 2)]
        pieces[0] = (ENCLOSING if extent.column else b"") + pieces[0]
        windows.append(Window(pieces, first, base[first : last + 1], language, extent))
    return windows


def _grouped(
    text: bytes, groups: list[tuple[int, int]], gaps: Sequence[tuple[int, int]], language: Language
) -> list[tuple[int, int, Extent]]:
    """Groups of gaps (first, last) with their extents; gaps whose extents overlap share one."""
    extents = [_extent(text, gaps[first][0], gaps[last][1], language) for first, last in groups]
    for place in range(1, len(groups)):
        if extents[place].begin < extents[place - 1].stop:
            joined = (groups[place - 1][0], groups[place][1])
            return _grouped(text, [*groups[: place - 1], joined, *groups[place + 1 :]], gaps, language)
    return [(first, last, extent) for (first, last), extent in zip(groups, extents, strict=True)]


def _extent(text: bytes, start: int, end: int, language: Language) -> Extent:
    """The smallest extent that holds the statements around a byte range and the neighbours of these."""
    line = text.rfind(b"\n", 0, start) + 1
    first = text[line:start]
    columns = [len(first) - len(first.lstrip(b" \t"))]
    columns += [len(lead) for lead in re.findall(rb"\n([ \t]*)\S", text[start:end])]
    extent = Extent(0, len(text), 0)
    for column in range(min(columns) + 1 if language.columns else 1):
        begin = _border_before(text, line, column)
        if begin is not None:
            extent = Extent(begin, _border_behind(text, end, column), column)
        if extent.stop - extent.begin <= SMALL:
            break
    return extent


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))


def _border_before(text: bytes, line: int, column: int) -> int | None:
    """Where the statement before the one around a line starts; None where the line belongs to no such statement."""
    found: int | None = None
    while True:
        stop = text.find(b"\n", line)
        current = text[line : stop if stop >= 0 else len(text)]
        if current.strip():
            if _indent(current) < column:
                return found
            if _indent(current) == column and not CONTINUATION.match(current, column):
                if found is not None:
                    return line
                found = line
        if line == 0:
            return found
        line = text.rfind(b"\n", 0, line - 1) + 1


def _border_behind(text: bytes, position: int, column: int) -> int:
    """Where the first whole statement behind a position ends."""
    statements = 0
    decorators: int | None = None
    while (newline := text.find(b"\n", position)) >= 0:
        position = newline + 1
        stop = text.find(b"\n", position)
        line = text[position : stop if stop >= 0 else len(text)]
        if not line.strip() or _indent(line) > column:
            continue
        if _indent(line) < column:
            return position
        if line.lstrip().startswith(b"@"):
            decorators = position if decorators is None else decorators
        elif not CONTINUATION.match(line, column):
            statements += 1
            if statements == 2:
                return position if decorators is None else decorators
            decorators = None
    return len(text)
