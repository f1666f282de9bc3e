"""Windows: the ranges of a document that its gaps' syntax depends on, each parsed on its own.

The time of a reparse grows with the number of siblings around an edit. A window holds only a statement and its
neighbours, and gaps in different windows are independent of each other.
"""

import math
import re
from collections.abc import Sequence
from functools import cached_property

from tree_sitter import Point, Tree

from lacuna_model.languages.language import Language
from lacuna_model.syntax.check.compilers import LARGEST, PROGRAM, SYNTAX, Newness, Oracle, never_newer, next_code_line
from lacuna_model.syntax.check.error_set import Fault, Splice, carried_over, identifier_faults, tree_faults
from lacuna_model.syntax.check.extent import Extent
from lacuna_model.syntax.check.indentation import indentation_faults
from lacuna_model.syntax.check.kept_strings import KeptString, kept_strings, torn
from lacuna_model.syntax.check.placement import Placement
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.lr.reparse import advance
from lacuna_model.syntax.text.balance import Balance

# The most progress reports of a parse: a multiple of those of the original's parse, or in proportion to the text.
EFFORT_FACTOR = 1.5
EFFORT_LEAST = 10
BYTES_PER_REPORT = 150
SMALL_TEXT = 8000
ENCLOSING = b"class x:\n"


class CheckedWindow:
    """The text of an extent around its gaps, and the tree of the last fills that were valid in it."""

    def __init__(
        self,
        text: bytes,
        gaps: Sequence[tuple[int, int]],
        base: Sequence[bytes],
        extent: Extent,
        language: Language,
        placement: Placement | None = None,
        clock: Clock | None = None,
        *,
        in_line: bool = False,
        parts: "Sequence[CheckedWindow]" = (),
        is_newer: Newness = never_newer,
    ) -> None:
        self._text, self._all_gaps, self._in_line, self._parts = text, gaps, in_line, parts
        self._is_newer = is_newer
        own = slice(extent.first, extent.last + 1)
        bounds = [extent.begin, *(offset for gap in gaps[own] for offset in gap), extent.stop]
        self.pieces = [text[bounds[i] : bounds[i + 1]] for i in range(0, len(bounds), 2)]
        if extent.column:
            self.pieces[0] = ENCLOSING + self.pieces[0]
        self.extent = extent
        self.base = tuple(base[own])
        self._language = language
        self.placement = placement
        self.clock = clock or Clock()
        self._parser = language.parser()
        self._tree: Tree | None = None
        self._first_fills = self.base
        self._last_fills: tuple[bytes, ...] | None = None
        self._last: tuple[Tree, frozenset[Fault]] | None = None
        self.settled = False  # whether the base is known to be valid

    @property
    def gaps(self) -> range:
        """The indices of the document's gaps that lie in this window."""
        return range(self.extent.first, self.extent.last + 1)

    @property
    def tree(self) -> Tree:
        """The tree of the last valid fills, at first of the fills that the window was made with."""
        return self._tree or self._first[0]

    @cached_property
    def _first(self) -> tuple[Tree, float]:
        """The tree of the first fills, and the most progress reports of any further parse."""
        text = self.assemble(self._first_fills)
        tree, reports = self._parser.counted(text, None, math.inf)
        assert tree is not None
        return tree, EFFORT_LEAST + max(EFFORT_FACTOR * reports, len(text) / BYTES_PER_REPORT)

    @cached_property
    def balance(self) -> Balance:
        """The brackets around the gaps, within the window."""
        begin, stop = self.extent.begin, self.extent.stop
        gaps = [(start - begin, end - begin) for start, end in self._all_gaps[self.extent.first : self.extent.last + 1]]
        return Balance(self._text[begin:stop], gaps, self._language.lexicon)

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
        """Parse the fills; return the tree and its faults, those of indentation only near the fills.

        Unless it is ``fresh``, the parse is incremental and bounded: None if error recovery would take too long. The
        last result is cached for a search that continues in other windows.
        """
        if fresh or tuple(fills) != self._last_fills:
            self._last_fills, self._last = tuple(fills), self._parse(fills, fresh=fresh)
        return self._last

    def _parse(self, fills: Sequence[bytes], *, fresh: bool) -> tuple[Tree, frozenset[Fault]] | None:
        text = self.assemble(fills)
        edited = self._edited(fills) if self._language.columns or not fresh else None
        tree = self._parser.parse(text) if fresh else self._bounded_parse(text, edited)
        if tree is None:
            return None
        return tree, self._faults(tree, text, fills, edited, placed=None if fresh or not self.settled else edited)

    def parse_onto(self, edited: Tree, fills: Sequence[bytes]) -> frozenset[Fault]:
        """The faults of an unbounded parse that starts from another tree, edited to these fills."""
        text = self.assemble(fills)
        return self._faults(self._parser.parse(text, edited), text, fills, edited, placed=edited)

    def _faults(
        self, tree: Tree, text: bytes, fills: Sequence[bytes], edited: Tree | None, *, placed: Tree | None
    ) -> frozenset[Fault]:
        """The faults of a tree; misplaced nodes only near the changes since ``placed``, if that is given."""
        faults = tree_faults(tree)
        if edited is not None and self._language.columns:
            changed = [(span.start_byte, span.end_byte) for span in edited.changed_ranges(tree)]
            beside = [(start, next_code_line(text, end)) for start, end in self.spans(fills)]
            faults |= indentation_faults(tree, text, beside + changed)
        faults = faults or identifier_faults(tree, text, self.spans(fills))
        faults = faults or self._misplaced(tree, text, fills, placed) | self._repeated(tree, text, fills)
        faults = faults or frozenset(torn(tree, self.spans(fills), self._kept))
        oracle = self._oracle(text) if not faults else None
        fault = oracle(text, self.spans(fills), self._is_newer) if oracle else None
        return faults if fault is None else frozenset({fault})

    def _oracle(self, text: bytes) -> Oracle | None:
        """The language's own compiler for a whole file, which is compiled in any case; else its parser."""
        whole = self.extent.begin == 0 and self.extent.stop == len(self._text)
        return (PROGRAM if whole and len(text) <= LARGEST else SYNTAX).get(self._language.name)

    def _misplaced(self, tree: Tree, text: bytes, fills: Sequence[bytes], edited: Tree | None) -> frozenset[Fault]:
        """The misplaced nodes that are not excused; near the changes since ``edited``, if that is given."""
        if self.placement is None:
            return frozenset()
        return self.placement.held_against(self._out_of_place(self.placement, tree, text, fills, edited))

    def _carried(self, faults: frozenset[Fault], fills: Sequence[bytes]) -> frozenset[Fault]:
        """Faults of the text with its gaps, moved to where they are with some fills."""
        spans = self.spans(self._first_fills)
        return carried_over(faults, [Splice(*span, len(fill)) for span, fill in zip(spans, fills, strict=True)])

    def _repeated(self, tree: Tree, text: bytes, fills: Sequence[bytes]) -> frozenset[Fault]:
        """The names that fills declare a second time; names that were declared twice before may stay so."""
        spans = self.spans(fills)
        found = self.placement.repeated(tree, text, spans) if self.placement is not None else frozenset()
        if not found or self.placement is None:
            return frozenset()
        before = self._first[0], self.assemble(self._first_fills), self.spans(self._first_fills)
        return self.placement.repeated_anew(found, text, spans, *before)

    @cached_property
    def _kept(self) -> Sequence[KeptString | None]:
        """The strings that one-line fills have to stay in; a whole text takes them from its parts without a parse."""
        if self._parts:
            return [one for part in self._parts for one in part._kept]
        spans = self.spans(self._first_fills)
        return kept_strings(self._first[0], spans) if self._in_line else [None] * len(spans)

    def _out_of_place(
        self, placement: Placement, tree: Tree, text: bytes, fills: Sequence[bytes], edited: Tree | None
    ) -> frozenset[Fault]:
        """The misplaced nodes that were not misplaced before."""
        beside = [(start, next_code_line(text, end)) for start, end in self.spans(fills)]
        near = None
        if edited is not None:
            near = beside + [(span.start_byte, span.end_byte) for span in edited.changed_ranges(tree)]
        found = placement.strays(tree, near) | placement.reserved_names(tree, text, beside)
        if found:
            found -= self._carried(self._standing, fills)
        return found | placement.line_ends(tree, text, near)

    @cached_property
    def _standing(self) -> frozenset[Fault]:
        """The misplaced nodes of the text with its gaps that the gaps do not cause.

        They touch no gap, and are not between a gap and a brace without its opener, which the gap may have held. Firm
        ones may touch a gap.
        """
        assert self.placement is not None
        tree, text, spans = self._first[0], self.assemble(self._first_fills), self.spans(self._first_fills)
        torn_off = [fault.start for fault in tree_faults(tree) if text.startswith(b"}", fault.start)]
        headless = range(spans[0][1], max(torn_off, default=0))
        found = self.placement.standing(tree, text)
        firm = {fault for fault in found if self.placement.is_firm(fault) and _beside(fault, spans, 0)}
        return frozenset(firm | {one for one in found if one.start not in headless and _beside(one, spans, 2)})

    def _bounded_parse(self, text: bytes, old: Tree | None) -> Tree | None:
        """An incremental parse, else a fresh one: reusing a tree full of errors can cost more than it saves."""
        limit = self._first[1]
        if not self.settled and len(text) <= SMALL_TEXT:
            return self._parser.counted(text, None, limit)[0]
        return self._parser.counted(text, old, limit)[0] or self._parser.counted(text, None, limit)[0]

    def _edited(self, fills: Sequence[bytes]) -> Tree:
        """A copy of the base tree, edited right to left so that earlier offsets stay true."""
        tree = self.tree.copy()
        edits = []
        point, offset = Point(0, 0), 0
        for piece, before, after in zip(self.pieces, self.base, fills, strict=False):
            point, offset = advance(point, piece), offset + len(piece)
            end = advance(point, before)
            if before != after:
                edits.append((offset, offset + len(before), offset + len(after), point, end, advance(point, after)))
            point, offset = end, offset + len(before)
        for edit in reversed(edits):
            tree.edit(*edit)
        return tree

    def rebase(self, fills: Sequence[bytes], tree: Tree) -> None:
        """Start further parses from these fills and their tree."""
        self.base, self._tree, self.settled = tuple(fills), tree, True

    def displace(self) -> bool:
        """From now on accept nodes that are merely out of place; False if it did so before."""
        if self.placement is None or self.placement.excused is None:
            return False
        self.placement.excused = self._last_fills = None
        return True

    def confine(self) -> None:
        """From now on accept only those kinds of misplaced nodes that its base has."""
        if self.lenient and self.placement is not None:
            found = self._out_of_place(self.placement, self.tree, self.assemble(self.base), self.base, None)
            self.placement.excused = frozenset(fault.kind for fault in found)

    @property
    def lenient(self) -> bool:
        """Whether it accepts any node that is out of place."""
        return self.placement is not None and self.placement.excused != frozenset()

    def may_mislead(self, fills: Sequence[bytes], faults: frozenset[Fault]) -> bool:
        """Whether the window's borders may be to blame: a fault at its end, or a fill that leaves its block."""
        last_line = len(self.assemble(fills).rstrip())
        return any(fault.end >= last_line for fault in faults) or any(
            len(lead) < self.extent.column for fill in fills for lead in re.findall(rb"\n([^\S\n]*)\S", fill)
        )


def _beside(fault: Fault, spans: Sequence[tuple[int, int]], distance: int) -> bool:
    """Whether a fault has at least this distance in bytes from every gap."""
    return all(fault.end + distance <= start or end + distance <= fault.start for start, end in spans)
