"""The original document: its errors, and which of them may stay when its gaps are filled."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property

from tree_sitter import Tree

from lacuna_model.languages.language import Language
from lacuna_model.syntax.check.error_set import Fault, Splice, carried_over, tree_faults
from lacuna_model.syntax.check.extent import Extent
from lacuna_model.syntax.check.indentation import indentation_faults
from lacuna_model.syntax.text.scan import scan_brackets

MARKS = re.compile(rb"[\s\"'`>/*?)\]}-]*")


class Original:
    """The faults of a text with gaps (ordered, disjoint byte ranges).

    ``extents`` are the ranges that the gaps' syntax depends on; empty for the whole text. They are ``apart`` if nothing
    is broken outside them. If every fill is ``in_line``, errors that remain without the gap's line may stay: one line
    need not repair how a macro looks in another. ``insides`` returns for each gap the closer of the comment or string
    around it.
    """

    def __init__(
        self,
        text: bytes,
        gaps: Sequence[tuple[int, int]],
        language: Language,
        extents: Sequence[Extent],
        *,
        apart: bool,
        in_line: bool,
        insides: Callable[[], Sequence[bytes]],
    ) -> None:
        self._text = text
        self._gaps = gaps
        self._language = language
        self._stretches = [(extent.begin, extent.stop) for extent in extents]
        self._apart = apart
        self._in_line = in_line
        self._insides = insides

    @cached_property
    def _tree(self) -> Tree:
        return self._parse(self._text)

    def _parse(self, text: bytes) -> Tree:
        return self._language.parser().parse(text)

    @cached_property
    def faults(self) -> frozenset[Fault]:
        """The errors of its tree."""
        return tree_faults(self._tree)

    @cached_property
    def _columns(self) -> frozenset[Fault]:
        """The errors of its indentation, which take a walk through the whole tree."""
        return indentation_faults(self._tree, self._text) if self._language.columns else frozenset()

    def known(self, *, columns: bool, near: bool, broken_before: bool = False) -> frozenset[Fault]:
        """Return the faults that may stay: with ``columns`` also of indentation, with ``near`` also near the gaps.

        Of those near the gaps all may stay if the text is ``broken_before`` them, else those behind them that do not
        depend on what the gaps hold.
        """
        faults = self.faults | self._columns if columns else self.faults
        beside = frozenset(filter(self._is_near, faults))
        far = frozenset() if self._apart else (faults - beside) & (self._independent | self._columns)
        if near:
            return far | (beside if broken_before else self._below(beside)) | self.unmendable
        return frozenset(fault for fault in far if not self._is_half(fault)) | self.unmendable

    @cached_property
    def _independent(self) -> frozenset[Fault]:
        """The faults that stay if the comments and strings around the gaps are closed there.

        A comment or string that ends far after its gap breaks the text at its end, which the fill has to repair.
        """
        ends = self._insides()
        if not any(ends):
            return self.faults
        ended = [Splice(end, end, len(inside)) for (_, end), inside in zip(self._gaps, ends, strict=True)]
        return self._lasting(self.faults, ended, _spliced(self._text, ended, ends))

    @cached_property
    def unmendable(self) -> frozenset[Fault]:
        """For one-line fills: the faults that exist without the gap's line as well, so that no fill repairs them.

        Faults near the gaps count only if the line is between whole statements and the brackets are balanced without
        it.
        """
        if not self._in_line:
            return frozenset()
        found = set[Fault]()
        for begin, stop in (self._apart and self._stretches) or [(0, len(self._text))]:
            text = self._text[begin:stop]
            gaps = [(start - begin, end - begin) for start, end in self._gaps if begin <= start <= end <= stop]
            lines = [Splice(*line, 0) for line in dict.fromkeys(_line(text, *gap) for gap in gaps)]
            faults = tree_faults(self._parse(text)) if len(text) < len(self._text) else self.faults
            rest = _spliced(text, lines)
            stay = self._lasting(faults, lines, rest) if faults else ()
            moved = {Fault(fault.kind, fault.start + begin, fault.end + begin) for fault in stay}
            if not (moved and self._is_balanced(rest) and all(_ends(text[: line.start]) for line in lines)):
                moved = {fault for fault in moved if not self._is_near(fault)}
            found |= moved
        return frozenset(found)

    def _below(self, faults: frozenset[Fault]) -> frozenset[Fault]:
        """The faults after the gaps, other than half brackets, that exist whatever the gaps or without their lines."""
        last, lexicon = max(end for _, end in self._gaps), self._language.lexicon
        behind = frozenset(fault for fault in faults if fault.start > last and not self._ends_something(fault))
        if not behind:
            return behind
        lines = [Splice(*line, 0) for line in dict.fromkeys(_line(self._text, *gap) for gap in self._gaps)]
        lasting = self._lasting(behind, lines, _spliced(self._text, lines))
        for neutral in dict.fromkeys((lexicon.operand, lexicon.field, lexicon.statement)):
            fills = [Splice(*gap, len(neutral)) for gap in self._gaps]
            behind = self._lasting(behind, fills, _spliced(self._text, fills, [neutral] * len(fills)))
        return lasting | behind

    def _is_balanced(self, text: bytes) -> bool:
        brackets = scan_brackets(text, self._language.lexicon)
        return not brackets.stack and not brackets.unmatched

    @cached_property
    def is_spoilt(self) -> bool:
        """Whether there are faults near the gaps that no fill can repair, so that a check of a part is of no use."""
        return any(map(self._is_near, self.unmendable))

    def _lasting(self, faults: frozenset[Fault], splices: Sequence[Splice], text: bytes) -> frozenset[Fault]:
        """The faults that are also in the text with some changes."""
        there = tree_faults(self._parse(text))
        return frozenset(fault for fault in faults if carried_over({fault}, splices) & there)

    def _is_near(self, fault: Fault) -> bool:
        stretches = self._stretches or [(0, len(self._text) + 1)]
        return any(fault.end >= begin and fault.start < stop for begin, stop in stretches)

    def _ends_something(self, fault: Fault) -> bool:
        """Whether it is a half, or the end of what a gap may begin: of a string, a comment, a tag or a block."""
        words = [closer for _, closer, _ in self._language.lexicon.blocks]
        there = self._text[fault.start : fault.end]
        return self._is_half(fault) or MARKS.fullmatch(there) is not None or there in words

    def _is_half(self, fault: Fault) -> bool:
        """Whether a closer is missing or has no opener: even far from the gaps, the gaps may lack its other half."""
        return fault.kind.startswith("MISSING") or self._text[fault.start : fault.end] in (b"}", b")", b"]")


def _ends(text: bytes) -> bool:
    """Whether the last line of a text ends a whole statement, begins a block or is a comment."""
    last = text.rstrip().rpartition(b"\n")[2].lstrip()
    return not last or last.endswith((b";", b"{", b"}", b"*/")) or last.startswith((b"//", b"#"))


def _line(text: bytes, start: int, end: int) -> tuple[int, int]:
    """The byte range of a range's lines, without the newline of the last."""
    stop = text.find(b"\n", end)
    return text.rfind(b"\n", 0, start) + 1, len(text) if stop < 0 else stop


def _spliced(text: bytes, splices: Sequence[Splice], fills: Sequence[bytes] = ()) -> bytes:
    """A text with some ranges removed, or replaced by ``fills``."""
    parts, since = list[bytes](), 0
    for splice, fill in zip(splices, fills or [b""] * len(splices), strict=True):
        parts += [text[since : splice.start], fill]
        since = splice.end
    return b"".join([*parts, text[since:]])
