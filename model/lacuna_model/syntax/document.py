"""A document with gaps: whether fills add a syntax error to it, incrementally and, for the last word, afresh."""

from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Tree

from lacuna_model.syntax.error_set import Fault, Splice, carried_over, tree_faults
from lacuna_model.syntax.indentation import indentation_faults
from lacuna_model.syntax.languages import Language
from lacuna_model.syntax.window import Extent, Window, narrow_windows


@dataclass(frozen=True, slots=True)
class Check:
    """What a parse of some fills found.

    ``faults`` are the errors that may not be there: each as the gap it stands nearest to and its byte offset from
    the start of that gap's fill, in the order of the text.
    """

    faults: tuple[tuple[int, int], ...]

    @property
    def valid(self) -> bool:
        """Whether the fills add no fault."""
        return not self.faults


class Document:
    """Text with gaps (ordered, disjoint byte ranges) in a language.

    Which errors of the original a fill may leave is settled in three stages, since a file with gaps is broken by
    the gaps themselves: at first only those apart from the gaps' windows, checked in the windows; after ``widen`` the
    same, checked in the whole file; after ``relax`` all of them.
    """

    def __init__(self, text: bytes, gaps: Sequence[tuple[int, int]], language: Language) -> None:
        self._text = text
        self._gaps = tuple(gaps)
        self._language = language
        original = [text[start:end] for start, end in gaps]
        bounds = [0, *(offset for gap in gaps for offset in gap), len(text)]
        pieces = [text[bounds[i] : bounds[i + 1]] for i in range(0, len(bounds), 2)]
        self._whole = Window(pieces, 0, original, language, Extent(0, len(text), 0))
        self._original_tree = self._whole.tree
        self._faults = tree_faults(self._original_tree)
        self._indent_faults: frozenset[Fault] | None = None if language.columns else frozenset()
        self._windows = narrow_windows(text, gaps, original, language)
        near = [window.extent for window in self._windows] or [self._whole.extent]
        self._tolerated = frozenset(
            fault for fault in self._faults if all(fault.end < e.begin or fault.start >= e.stop for e in near)
        )
        self._confirmed = not self._faults  # whether the windows are known to speak for the whole
        if self._confirmed and any(tree_faults(window.tree) for window in self._windows):
            self._windows = []

    def assemble(self, fills: Sequence[bytes]) -> bytes:
        """The document with its gaps filled."""
        return self._whole.assemble(fills)

    def spans(self, fills: Sequence[bytes]) -> list[tuple[int, int]]:
        """The byte range of each fill in the assembled document."""
        return self._whole.spans(fills)

    def widen(self) -> bool:
        """From now on checks in the whole document; False if it did before."""
        changed = bool(self._windows)
        self._windows = []
        return changed

    def relax(self) -> bool:
        """From now on tolerates the original's faults near the gaps too; False if that changes nothing."""
        changed = self._tolerated != self._faults
        self._tolerated = self._faults
        return self.widen() or changed

    def check(self, fills: Sequence[bytes], *, thorough: bool = False) -> Check:
        """The verdict of an incremental parse; fills found valid are what the next parse starts from.

        A window may reject fills that are valid in the whole document; a ``thorough`` check then asks that.
        """
        if not self._windows:
            return self._check_whole(fills)
        found: list[tuple[int, int]] = []
        parsed: list[tuple[Window, Tree]] = []
        for window in self._windows:
            own = [fills[gap] for gap in window.gaps]
            if self._confirmed and tuple(own) == window.base:
                continue
            outcome = window.parse(own)
            if outcome is None:
                found += [(gap, 0) for gap in window.gaps]
            elif outcome[1]:
                if thorough and window.may_mislead(own, outcome[1]):
                    return self._check_whole(fills)
                found += _nearest(window, own, outcome[1])
            else:
                parsed.append((window, outcome[0]))
        if not found and not self._confirmed:
            return self._confirm(fills)
        if not found:
            for window, tree in parsed:
                window.rebase([fills[gap] for gap in window.gaps], tree)
        return Check(tuple(found))

    def _confirm(self, fills: Sequence[bytes]) -> Check:
        """Fills that are valid in the windows, in the whole: if that disagrees, the windows are given up."""
        check = self._check_whole(fills)
        self._confirmed = check.valid
        if not check.valid:
            self.widen()
        return check

    def _check_whole(self, fills: Sequence[bytes]) -> Check:
        outcome = self._whole.parse(fills)
        if outcome is None:
            return Check(tuple((gap, 0) for gap in self._whole.gaps))
        tree, faults = outcome
        check = self._judge(fills, faults)
        if check.valid:
            self._whole.rebase(fills, tree)
        return check

    def check_fresh(self, fills: Sequence[bytes]) -> Check:
        """The verdict of a fresh, unbounded parse of the whole document."""
        outcome = self._whole.parse(fills, fresh=True)
        assert outcome is not None
        return self._judge(fills, outcome[1])

    def _judge(self, fills: Sequence[bytes], faults: frozenset[Fault]) -> Check:
        if not faults:
            return Check(())
        splices = [Splice(*gap, len(fill)) for gap, fill in zip(self._gaps, fills, strict=True)]
        known = carried_over(self._tolerated | self._known_indent_faults(faults), splices)
        return Check(tuple(_nearest(self._whole, fills, faults - known)))

    def _known_indent_faults(self, faults: frozenset[Fault]) -> frozenset[Fault]:
        """The original's faults of indentation, only where asked for: finding them walks the whole tree."""
        if self._indent_faults is None and any(fault.kind == "INDENT" for fault in faults):
            self._indent_faults = indentation_faults(self._original_tree, self._text)
        return self._indent_faults or frozenset()


def _nearest(window: Window, fills: Sequence[bytes], faults: frozenset[Fault]) -> list[tuple[int, int]]:
    """Each fault as (gap, offset from the start of its fill), in the order of their places."""
    spans = window.spans(fills)
    found = []
    for fault in sorted(faults, key=lambda fault: fault.start):
        distances = [max(start - fault.end, fault.start - end, 0) for start, end in spans]
        index = distances.index(min(distances))
        found.append((window.first + index, fault.start - spans[index][0]))
    return found
