"""A document as it was: what is broken in it, and which of that may still be broken when its gaps are filled."""

from collections.abc import Callable, Sequence
from functools import cached_property

from tree_sitter import Tree

from lacuna_model.languages.language import Language
from lacuna_model.syntax.check.error_set import Fault, Splice, carried_over, tree_faults
from lacuna_model.syntax.check.extent import Extent
from lacuna_model.syntax.check.indentation import indentation_faults
from lacuna_model.syntax.text.scan import scan_brackets


class Original:
    """The faults of a text with gaps (ordered, disjoint byte ranges).

    ``extents`` are the stretches that the gaps' syntax depends on, none where it is all of the text; they are
    ``apart`` where nothing is broken outside of them. Where every fill is ``in_line``, what is broken without the
    gap's line as well may stay: a line is not to mend what a macro looks like in another. ``insides`` finds what ends
    the comments and strings that the gaps stand in.
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
        """The errors of its indentation; to find them takes a walk through the whole tree."""
        return indentation_faults(self._tree, self._text) if self._language.columns else frozenset()

    def known(self, *, columns: bool, near: bool) -> frozenset[Fault]:
        """The faults that may stay: with those of ``columns``, and with those ``near`` the gaps or not."""
        faults = self.faults | self._columns if columns else self.faults
        beside = frozenset(filter(self._is_near, faults))
        far = frozenset() if self._apart else (faults - beside) & (self._independent | self._columns)
        if near:
            return far | beside | self.unmendable
        return frozenset(fault for fault in far if not self._is_half(fault)) | self.unmendable

    @cached_property
    def _independent(self) -> frozenset[Fault]:
        """The faults that stay when the comments and strings that gaps stand in are ended there.

        One that goes on far behind its gap breaks what stands where it ends, which is for the fill to mend.
        """
        ends = self._insides()
        if not any(ends):
            return self.faults
        ended = [Splice(end, end, len(inside)) for (_, end), inside in zip(self._gaps, ends, strict=True)]
        return self._lasting(self.faults, ended, _spliced(self._text, ended, ends))

    @cached_property
    def unmendable(self) -> frozenset[Fault]:
        """Where fills are of one line: the faults that are there without it as well, and none of which it could end.

        Those far away are none of its own. Nor is any where it stands between whole statements in balanced brackets.
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

    def _is_balanced(self, text: bytes) -> bool:
        brackets = scan_brackets(text, self._language.lexicon)
        return not brackets.stack and not brackets.unmatched

    @cached_property
    def is_spoilt(self) -> bool:
        """Whether there are faults near the gaps that no fill can mend: a part of the text does not tell then."""
        return any(map(self._is_near, self.unmendable))

    def _lasting(self, faults: frozenset[Fault], splices: Sequence[Splice], text: bytes) -> frozenset[Fault]:
        """Those of the faults that are in the text with some changes as well."""
        there = tree_faults(self._parse(text))
        return frozenset(fault for fault in faults if carried_over({fault}, splices) & there)

    def _is_near(self, fault: Fault) -> bool:
        stretches = self._stretches or [(0, len(self._text) + 1)]
        return any(fault.end >= begin and fault.start < stop for begin, stop in stretches)

    def _is_half(self, fault: Fault) -> bool:
        """Whether a closer is missing or has no opener: even far from the gaps it is what they lack."""
        return fault.kind.startswith("MISSING") or self._text[fault.start : fault.end] in (b"}", b")", b"]")


def _ends(text: bytes) -> bool:
    """Whether a text, to judge by its last line, ends with a whole statement, the beginning of a block or a comment."""
    last = text.rstrip().rpartition(b"\n")[2].lstrip()
    return not last or last.endswith((b";", b"{", b"}", b"*/")) or last.startswith((b"//", b"#"))


def _line(text: bytes, start: int, end: int) -> tuple[int, int]:
    """The lines of a stretch, without the newline of the last."""
    stop = text.find(b"\n", end)
    return text.rfind(b"\n", 0, start) + 1, len(text) if stop < 0 else stop


def _spliced(text: bytes, splices: Sequence[Splice], fills: Sequence[bytes] = ()) -> bytes:
    """A text with some stretches taken out, or others in their places."""
    parts, since = list[bytes](), 0
    for splice, fill in zip(splices, fills or [b""] * len(splices), strict=True):
        parts += [text[since : splice.start], fill]
        since = splice.end
    return b"".join([*parts, text[since:]])
