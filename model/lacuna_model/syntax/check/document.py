"""A document with gaps: checks whether fills add a syntax error, incrementally and finally with a fresh parse."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Point, Tree

from lacuna_model.languages.language import Language
from lacuna_model.syntax.check.compilers import COMPILES, LINE, PROGRAM, is_header, newness, next_code_line, scopes
from lacuna_model.syntax.check.error_set import Fault, Splice, carried_over, tree_faults
from lacuna_model.syntax.check.extent import Extent, find_extents, skeleton
from lacuna_model.syntax.check.indentation import indentation_faults
from lacuna_model.syntax.check.original import Original
from lacuna_model.syntax.check.placement import placement_in
from lacuna_model.syntax.check.strict import Strict
from lacuna_model.syntax.check.windows import CheckedWindow
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.lr.reparse import advance
from lacuna_model.syntax.text.balance import Balance

SCOPED = re.compile(rb"\b(?:await|yield|break|continue|nonlocal|__future__)\b")


@dataclass(frozen=True, slots=True)
class Check:
    """The faults that a parse of some fills found.

    ``faults`` are the errors that may not stay, in the order of the text. Each is the index of the nearest gap and the
    byte offset from the start of that gap's fill.
    """

    faults: tuple[tuple[int, int], ...]

    @property
    def valid(self) -> bool:
        """Whether the fills add no fault."""
        return not self.faults


class Document:
    """A text with gaps (ordered, disjoint byte ranges) in a ``language``.

    The gaps themselves break the file, so four stages decide which errors of the original may stay. At first only
    errors outside the gaps' windows may stay, if there are any without the windows. After ``widen`` the same is checked
    in the whole file. After ``displace`` nodes that are merely out of place are accepted until there are valid fills;
    then only the kinds that those fills have. After ``relax`` errors in the windows that no fill mends may stay too. If
    every fill is ``in_line``, errors that remain without the gap's line may stay from the beginning: one line need not
    repair how a macro looks in another.
    """

    def __init__(
        self,
        text: bytes,
        gaps: Sequence[tuple[int, int]],
        language: Language,
        clock: Clock | None = None,
        *,
        in_line: bool = False,
    ) -> None:
        self._text = text
        self._gaps = tuple(gaps)
        self.language = language
        self._clock, self._in_line = clock or Clock(), in_line
        self._original = tuple(text[start:end] for start, end in gaps)
        self._is_newer = newness(text, gaps, language.name)
        extents, rest = find_extents(text, gaps, language)
        self._sound_elsewhere = rest is not None and not rest.root_node.has_error
        self._rest = rest
        self._placement = placement_in(language, rest)
        self._extents = extents
        self._windows = self._parts = [self._window(extent) for extent in extents]
        self._strict = Strict(text, gaps, language.strict) if language.strict is not None else None
        self._relaxed = self._broken_before = False
        self._suited: set[tuple[bytes, ...]] = set()
        self._balance = Balance(text, gaps, language.lexicon)
        self._before = Original(
            text, gaps, language, extents, apart=self._sound_elsewhere, in_line=in_line, insides=self._insides
        )

    @property
    def windows(self) -> Sequence[CheckedWindow]:
        """The windows that fills are checked in now."""
        return self._windows or [self._whole]

    def balance(self, gap: int) -> tuple[Balance, int]:
        """The brackets around a gap, and its index among their gaps.

        They are those of its window; without windows, or where blocks are columns, those of the whole document.
        """
        if not self.language.columns:
            for window in self._windows:
                if gap in window.gaps:
                    return window.balance, gap - window.extent.first
        return self._balance, gap

    def _insides(self) -> list[bytes]:
        """For each gap the closer of the comment or string that it begins in."""
        sides = (balance.sides(index) for balance, index in map(self.balance, range(len(self._gaps))))
        return [one.left.inside.strip() for one in sides]

    @property
    def idle(self) -> bool:
        """Whether errors around the gaps are tolerated, so that the unchanged text would be valid."""
        return self._relaxed and bool(self._before.faults)

    @cached_property
    def _whole(self) -> CheckedWindow:
        everything = Extent(0, len(self._gaps) - 1, 0, len(self._text), 0)
        return self._window(everything, self._parts)

    def _window(self, extent: Extent, parts: Sequence[CheckedWindow] = ()) -> CheckedWindow:
        return CheckedWindow(
            self._text,
            self._gaps,
            self._original,
            extent,
            self.language,
            self._placement,
            self._clock,
            in_line=self._in_line,
            parts=parts,
            is_newer=self._is_newer,
        )

    @cached_property
    def _around(self) -> list[tuple[bytes, int]]:
        """For each gap the beginning of its line, and the column of the next line of code after it."""
        text = self._text
        found = []
        for start, end in self._gaps:
            line = text[text.rfind(b"\n", 0, end := next_code_line(text, end)) + 1 : end]
            found.append((text[text.rfind(b"\n", 0, start) + 1 : start], len(line) - len(line.lstrip())))
        return found

    def assemble(self, fills: Sequence[bytes]) -> bytes:
        """The document with its gaps filled."""
        return self._whole.assemble(fills)

    def spans(self, fills: Sequence[bytes]) -> list[tuple[int, int]]:
        """The byte range of each fill in the assembled document."""
        return self._whole.spans(fills)

    def widen(self) -> bool:
        """From now on check in the whole document; False if that changes nothing."""
        changed = bool(self._windows)
        self._windows = []
        return changed

    def displace(self) -> bool:
        """From now on accept nodes that are merely out of place; False if that changes nothing."""
        changed = self.widen()
        return self._whole.displace() or changed

    def relax(self, *, broken_before: bool) -> bool:
        """From now on tolerate the original's faults near the gaps too; False if that changes nothing.

        All of them if the text is ``broken_before`` the gaps whatever these hold, else those that no fill mends.
        """
        changed = not self._relaxed and bool(self._before.faults)
        self._relaxed, self._broken_before = True, broken_before
        return self.displace() or changed

    def check(self, fills: Sequence[bytes], *, thorough: bool = False) -> Check:
        """Check the fills with an incremental parse; the next parse starts from the last valid fills.

        A window may reject fills that are valid in the whole document. A ``thorough`` check then parses the whole
        document.
        """
        if not self._windows or self._before.is_spoilt:
            return self._check_whole(fills, thorough=thorough)
        found: list[tuple[int, int]] = []
        parsed: list[tuple[CheckedWindow, Tree]] = []
        for window in self._windows:
            own = tuple(fills[gap] for gap in window.gaps)
            if window.settled and own == window.base:
                continue
            outcome = window.parse(own)
            if outcome is not None and not outcome[1]:
                parsed.append((window, outcome[0]))
            elif thorough and (outcome is None or window.may_mislead(own, outcome[1])):
                check = self._check_whole(fills, thorough=True)
                if check.valid:
                    self._windows = []  # the windows mislead, and would do so again
                return check
            elif outcome is None:
                found += [(gap, 0) for gap in window.gaps]
            else:
                found += nearest(window, own, outcome[1])
        if not found:
            found += self._check_scopes(fills)
        if not found:
            for window, tree in parsed:
                window.rebase([fills[gap] for gap in window.gaps], tree)
        return Check(tuple(found))

    def _check_scopes(self, fills: Sequence[bytes]) -> Sequence[tuple[int, int]]:
        """Compile the document if a fill is a header or has words that are valid only in some scopes.

        A window does not show these errors. Such words may also follow a fill, in the function or loop that the fill
        begins or ends.
        """
        if self.language.name not in PROGRAM:
            return ()
        bound = tuple(
            fill if is_header(fill) or SCOPED.search(fill) else scopes(line + fill, column)
            for fill, (line, column) in zip(fills, self._around, strict=True)
        )
        if not any(bound) or bound in self._suited:
            return ()
        found = self._compiled(fills, Check(())).faults
        if not found:  # compiled once, since that takes as long as many checks; the final check compiles again
            self._suited.add(bound)
        return found

    def _check_whole(self, fills: Sequence[bytes], *, thorough: bool) -> Check:
        # error recovery depends on the reused tree, so a parse must be fresh if errors may stay
        outcome = self._whole.parse(fills, fresh=self._relaxed)
        if outcome is None and thorough:
            outcome = self._whole.parse(fills, fresh=True)
        if outcome is None:
            return Check(tuple((gap, 0) for gap in self._whole.gaps))
        check = self._compiled(fills, self._judge(fills, outcome[1]), soon=True)
        if check.valid:
            self._whole.rebase(fills, outcome[0])
            if not self._relaxed:
                self._whole.confine()
        return check

    def check_soon(self, fills: Sequence[bytes]) -> Check:
        """Predict the verdict of ``check_fresh`` without parsing the text outside the gaps' windows again."""
        if not self._sound_elsewhere or self._relaxed:
            return self.check_fresh(fills)
        check = self._compiled(fills, self._judge(fills, self._whole.parse_onto(self._rest_with(fills), fills)))
        return check if check.valid else self.check_fresh(fills)

    @cached_property
    def _skeleton(self) -> tuple[bytes, list[int]]:
        return skeleton(self._text, self._extents, self.language)

    def _rest_with(self, fills: Sequence[bytes]) -> Tree:
        """The tree of the skeleton, edited to the document with its gaps filled."""
        assert self._rest is not None
        text, tree = self.assemble(fills), self._rest.copy()
        content, places = self._skeleton
        grown = [len(fill) - len(original) for fill, original in zip(fills, self._original, strict=True)]
        for extent, place in zip(reversed(self._extents), reversed(places), strict=True):
            start = place - extent.column
            stop = place + len(self.language.lexicon.filler) + 1
            begin = extent.begin + sum(grown[: extent.first])
            filled = text[begin : extent.stop + sum(grown[: extent.last + 1])]
            point = advance(Point(0, 0), content[:start])
            ends = advance(point, content[start:stop]), advance(point, filled)
            tree.edit(start, stop, start + len(filled), point, *ends)
        return tree

    def check_fresh(self, fills: Sequence[bytes]) -> Check:
        """The verdict of a fresh, unbounded parse of the whole document and of the language's own compiler."""
        outcome = self._whole.parse(fills, fresh=True)
        assert outcome is not None
        return self._compiled(fills, self._judge(fills, outcome[1]))

    def _compiled(self, fills: Sequence[bytes], check: Check, *, soon: bool = False) -> Check:
        """A verdict, extended by the errors of the language's own parser or compiler if the fills are valid otherwise.

        With ``soon`` a strict parser skips documents that are too large for it.
        """
        refused = self._strict.fault(self.assemble(fills), soon=soon) if self._strict and check.valid else None
        if refused is not None:
            return Check(tuple(nearest(self._whole, fills, frozenset({refused}))))
        oracle = PROGRAM.get(self.language.name)
        if oracle is None or not check.valid:
            return check
        text, spans = self.assemble(fills), self.spans(fills)
        line = LINE[self.language.name](text, self._is_newer)
        if not line:
            return check
        fault = oracle(text, spans, self._is_newer)
        if fault is None and not self._relaxed and self._extents and self._compiles_elsewhere:
            before = [span for span in spans if text.count(b"\n", 0, span[0]) < line]
            fault = Fault("SYNTAX", *(before or spans[:1])[-1])
        return check if fault is None else Check(tuple(nearest(self._whole, fills, frozenset({fault}))))

    @cached_property
    def _compiles_elsewhere(self) -> bool:
        return COMPILES[self.language.name](self._skeleton[0], self._is_newer)

    def _judge(self, fills: Sequence[bytes], faults: frozenset[Fault]) -> Check:
        """Return the faults that may not stay: new ones, and those near the gaps, which the fills have to repair."""
        if not faults:
            return Check(())
        columns = any(fault.kind == "INDENT" for fault in faults)
        known = self._before.known(columns=columns, near=self._relaxed, broken_before=self._broken_before)
        splices = [Splice(*gap, len(fill)) for gap, fill in zip(self._gaps, fills, strict=True)]
        known = frozenset(fault for fault in carried_over(known, splices) if not self._at_fill(fault, fills))
        return Check(tuple(nearest(self._whole, fills, faults - known)))

    def _at_fill(self, fault: Fault, fills: Sequence[bytes]) -> bool:
        """Whether a fault begins or ends at a fill, which is then to blame whatever the original had there."""
        return any(
            start - 1 <= place <= end + 1 for start, end in self.spans(fills) for place in (fault.start, fault.end)
        )


def parses(text: bytes, language: Language) -> bool:
    """Whether a whole text has no syntax error, indentation included."""
    tree = language.parser().parse(text)
    return not tree_faults(tree) and not (language.columns and indentation_faults(tree, text))


def nearest(window: CheckedWindow, fills: Sequence[bytes], faults: frozenset[Fault]) -> list[tuple[int, int]]:
    """Each fault as (gap, offset from the start of its fill), in the order of the text."""
    spans = window.spans(fills)
    found = []
    for fault in sorted(faults, key=lambda fault: fault.start):
        distances = [max(start - fault.end, fault.start - end, 0) for start, end in spans]
        index = distances.index(min(distances))
        found.append((window.extent.first + index, fault.start - spans[index][0]))
    return found
