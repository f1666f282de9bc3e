"""A document with gaps: checks whether fills add an error, incrementally and finally with a fresh parse."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from tree_sitter import Point, Tree

from lacuna_model.core.work import Clock
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError, advance
from lacuna_model.syntax.compilers import Compiler, Strict, next_code_line
from lacuna_model.syntax.faults import (
    Fault,
    FilledTree,
    Splice,
    all_faults,
    carried_over,
    indentation_faults,
    tree_faults,
)
from lacuna_model.syntax.original import Original
from lacuna_model.syntax.placement import KeptString, kept_strings, placement_in, torn
from lacuna_model.syntax.sides import Sides, sides_of
from lacuna_model.text.lines import splice

# The most progress reports of a parse: a multiple of those of the original's parse, or in proportion to the text.
EFFORT_FACTOR = 1.5
EFFORT_LEAST = 10
BYTES_PER_REPORT = 150

Spans = Sequence[tuple[int, int]]


class Check(NamedTuple):
    """The errors of a text with some fills that may not stay."""

    faults: frozenset[Fault]

    @property
    def valid(self) -> bool:
        """Whether the fills add no error."""
        return not self.faults


class Document:
    """A text with gaps (ordered, disjoint byte ranges) in a ``language``.

    Errors apart from its gaps may stay, unless it is ``strict``. If every fill is ``in_line``, it stays in the string
    around its gap.
    """

    def __init__(
        self,
        text: bytes,
        gaps: Spans,
        language: Language,
        clock: Clock | None = None,
        *,
        in_line: bool = False,
        strict: bool = False,
    ) -> None:
        self._text, self._gaps, self.language = text, tuple(gaps), language
        self._clock, self._in_line = clock or Clock(), in_line
        self._parser = language.parser()
        bounds = [0, *(offset for gap in gaps for offset in gap), len(text)]
        self._pieces = [text[begin:end] for begin, end in zip(bounds[::2], bounds[1::2], strict=True)]
        self._holes = tuple(text[start:end] for start, end in gaps)
        self.strict = strict
        self._placement = placement_in(language)
        self._parsers = Strict(text, gaps, language.strict) if language.strict is not None else None
        self._compiler = Compiler(text, gaps) if language.name == "python" else None
        self._original = Original(text, gaps, language)
        self._base = self._holes  # the last valid fills, and their tree
        self._base_tree: Tree | None = None

    def sides(self) -> Sides:
        """The texts around the only gap and their brackets."""
        before, after = self._pieces
        return sides_of(before, after, self.language.lexicon)

    def assemble(self, fills: Sequence[bytes]) -> bytes:
        """The document with its gaps filled."""
        return splice(self._text, [(*gap, fill) for gap, fill in zip(self._gaps, fills, strict=True)])

    def spans(self, fills: Sequence[bytes]) -> list[tuple[int, int]]:
        """The byte range of each fill in the assembled document."""
        spans, offset = [], 0
        for piece, fill in zip(self._pieces, fills, strict=False):
            offset += len(piece)
            spans.append((offset, offset + len(fill)))
            offset += len(fill)
        return spans

    @property
    def has_errors_apart(self) -> bool:
        """Whether the text has errors apart from its gaps."""
        return bool(self._original.apart)

    @property
    def has_lasting_errors(self) -> bool:
        """Whether the text has errors that are not due to its gaps, however near; columns may be due to them."""
        return any(fault.kind != "INDENT" for fault in self._original.lasting)

    def check(self, fills: Sequence[bytes]) -> Check:
        """Check the fills with a parse that starts from the last valid ones and is bounded in effort."""
        text = self.assemble(fills)
        # error recovery depends on the tree that is reused
        reused = None if self._base_has_error else self._edited(fills)
        tree = self._parsed(text, reused, self._most_effort)
        if tree is None and reused is not None:  # to reuse a tree full of errors can cost more than it saves
            tree = self._parsed(text, None, self._most_effort)
        check = self._checked(tree, text, fills, soon=True)
        if check.valid:
            self._base, self._base_tree = tuple(fills), tree
        return check

    def check_fresh(self, fills: Sequence[bytes]) -> Check:
        """The verdict of a fresh, unbounded parse."""
        text = self.assemble(fills)
        return self._checked(self._parsed(text, None, math.inf), text, fills, soon=False)

    def _parsed(self, text: bytes, reused: Tree | None, most: float) -> Tree | None:
        """The tree of the text with some fills; None if the parse takes more than ``most`` effort or does not end.

        Raises UnparsableError if that is so whatever the fills are.
        """
        try:
            return self._parser.counted(text, reused, most)[0]
        except UnparsableError:
            _ = self._original.tree  # raises it, too, if the fills are not to blame
            return None

    def _checked(self, tree: Tree | None, text: bytes, fills: Sequence[bytes], *, soon: bool) -> Check:
        if tree is None:
            return Check(frozenset(Fault("ENDLESS", *span) for span in self.spans(fills)))
        return Check(self._faults(FilledTree(tree, text, self.spans(fills)), fills, soon=soon))

    @property
    def _base_has_error(self) -> bool:
        return self._base_tree is not None and self._base_tree.root_node.has_error

    @property
    def _most_effort(self) -> float:
        return EFFORT_LEAST + max(EFFORT_FACTOR * self._original.reports, len(self._text) / BYTES_PER_REPORT)

    def _edited(self, fills: Sequence[bytes]) -> Tree:
        """A copy of the base tree, edited right to left so that earlier offsets stay true."""
        tree, edits = (self._base_tree or self._original.tree).copy(), []
        point, offset = Point(0, 0), 0
        for piece, before, after in zip(self._pieces, self._base, fills, strict=False):
            point, offset = advance(point, piece), offset + len(piece)
            end = advance(point, before)
            if before != after:
                edits.append((offset, offset + len(before), offset + len(after), point, end, advance(point, after)))
            point, offset = end, offset + len(before)
        for edit in reversed(edits):
            tree.edit(*edit)
        return tree

    def _faults(self, filled: FilledTree, fills: Sequence[bytes], *, soon: bool) -> frozenset[Fault]:
        """The errors of the first kind that a text with fills has and that may not stay."""
        tree, text, spans = filled
        if faults := self._unknown(tree_faults(tree), fills):
            return faults
        beside = [(start, next_code_line(text, end)) for start, end in spans]
        near = beside + [(one.start_byte, one.end_byte) for one in self._edited(fills).changed_ranges(tree)]
        if self.language.lexicon.columns and (faults := self._unknown(indentation_faults(tree, text, near), fills)):
            return faults
        faults = frozenset[Fault]()
        if self._placement is not None and tree.root_node.has_error:
            faults = self._placement.faults(filled, self._original, spans, spans)  # what errors are nearby is misplaced
        elif self._placement is not None:
            is_sound = self._base_tree is not None
            faults = self._placement.faults(filled, self._original, near if is_sound else None, beside)
        faults = faults or frozenset(torn(filled, self._kept))
        if not faults and self._parsers is not None:
            faults = self._parsers.faults(text, soon=soon)
        if not faults and self._compiler is not None:
            faults = self._compiler.faults(text, spans)
        return faults

    def _unknown(self, faults: frozenset[Fault], fills: Sequence[bytes]) -> frozenset[Fault]:
        """The faults that the text does not have apart from its gaps, and those at a fill, which is then to blame."""
        if not faults or self.strict:
            return faults
        splices = [Splice(*gap, len(fill)) for gap, fill in zip(self._gaps, fills, strict=True)]
        near = [(start - 1, end + 1) for start, end in self.spans(fills)]
        return faults - frozenset(
            fault
            for fault in carried_over(self._original.apart, splices)
            if not any(start <= place <= end for start, end in near for place in (fault.start, fault.end))
        )

    @cached_property
    def _kept(self) -> Sequence[KeptString | None]:
        """The strings that one-line fills have to stay in."""
        return kept_strings(self._original.unfilled) if self._in_line else [None] * len(self._gaps)


def parses(text: bytes, language: Language) -> bool:
    """Whether a whole text has no syntax error, indentation included."""
    return not all_faults(language.parser().parse(text), text, language)
