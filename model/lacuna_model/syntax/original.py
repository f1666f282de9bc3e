"""The original document: its errors, and which of them may stay when its gaps are filled."""

import math
import re
from collections.abc import Sequence
from functools import cached_property

from tree_sitter import Tree

from lacuna_model.languages.language import Language
from lacuna_model.syntax.faults import Fault, FilledTree, Splice, all_faults, carried_over
from lacuna_model.syntax.sides import scan_left
from lacuna_model.text.lines import splice

MARKS = re.compile(rb"[\s\"'`>/*?)\]}-]*")
NEAR_LINES = 2  # above and below a gap, that its fill may have to mend
HALVES = (b"}", b")", b"]")


class Original:
    """The faults of a text with gaps (ordered, disjoint byte ranges).

    What is wrong whatever the gaps hold is wrong without their lines, too.
    """

    def __init__(self, text: bytes, gaps: Sequence[tuple[int, int]], language: Language) -> None:
        self._text, self._gaps, self._language = text, gaps, language
        self._lines = list(dict.fromkeys(_line(text, *gap) for gap in gaps))
        self._cuts = [Splice(*line, 0) for line in self._lines]
        self._around = [_with_neighbours(text, *line) for line in self._lines]

    def _parse(self, text: bytes) -> Tree:
        return self._language.parser().parse(text)

    @cached_property
    def _parsed(self) -> tuple[Tree | None, int]:
        return self._language.parser().counted(self._text, None, math.inf)

    @property
    def tree(self) -> Tree:
        """Its tree."""
        assert self._parsed[0] is not None
        return self._parsed[0]

    @property
    def unfilled(self) -> FilledTree:
        """The text as it is, with the ranges of its gaps."""
        return FilledTree(self.tree, self._text, self._gaps)

    @cached_property
    def without_lines(self) -> FilledTree:
        """The text without the gaps' lines, with the places where they were."""
        text, cuts = splice(self._text, [(*line, b"") for line in self._lines]), self.lines_put_back
        return FilledTree(self._parse(text), text, [(cut.start, cut.start) for cut in cuts])

    @property
    def lines_put_back(self) -> list[Splice]:
        """The changes of the text without the gaps' lines that put these lines back."""
        removed, found = 0, list[Splice]()
        for begin, stop in self._lines:
            found.append(Splice(begin - removed, begin - removed, stop - begin))
            removed += stop - begin
        return found

    @property
    def reports(self) -> int:
        """How many reports of progress its parse gave."""
        return self._parsed[1]

    @cached_property
    def lasting(self) -> frozenset[Fault]:
        """The faults that the text has without the gaps' lines, too, and that end nothing that a gap may begin."""
        here = all_faults(self.tree, self._text, self._language)
        there = self._lasting(here, self._cuts, *self.without_lines[:2])
        return self._without_literals(frozenset(fault for fault in there if not self._ends_something(fault)))

    @cached_property
    def apart(self) -> frozenset[Fault]:
        """Those that are not near a gap: there a fill may have to mend them."""
        return frozenset(fault for fault in self.lasting if not self._is_near(fault))

    def _without_literals(self, faults: frozenset[Fault]) -> frozenset[Fault]:
        """The faults that also exist where the comments and strings around the gaps are ended there."""
        ends = [scan_left(self._text[:start], self._language.lexicon).inside.strip() for start, _ in self._gaps]
        ended = [Splice(end, end, len(inside)) for (_, end), inside in zip(self._gaps, ends, strict=True)]
        text = splice(self._text, [(end, end, inside) for (_, end), inside in zip(self._gaps, ends, strict=True)])
        return self._lasting(faults, ended, self._parse(text), text) if any(ends) else faults

    def _lasting(
        self, faults: frozenset[Fault], splices: Sequence[Splice], tree: Tree, text: bytes
    ) -> frozenset[Fault]:
        """The faults that are also in the ``tree`` of the ``text`` with some changes."""
        there = all_faults(tree, text, self._language)
        return frozenset(fault for fault in faults if carried_over({fault}, splices) & there)

    def _is_near(self, fault: Fault) -> bool:
        return any(fault.end >= begin and fault.start <= stop for begin, stop in self._around)

    def _ends_something(self, fault: Fault) -> bool:
        """Whether it is a half, or begins with the end of what a gap may begin: of a bracket, a tag or a block.

        Or it is the end of a string or a comment.
        """
        lexicon, there = self._language.lexicon, self._text[fault.start : fault.end]
        if fault.kind == "INDENT":
            return False
        if fault.kind.startswith("MISSING") or there.startswith(HALVES) or (lexicon.tags and there.startswith(b"</")):
            return True
        return MARKS.fullmatch(there) is not None or there in [closer for _, closer, _ in lexicon.blocks]


def _line(text: bytes, start: int, end: int) -> tuple[int, int]:
    """The byte range of a range's lines, without the newline of the last."""
    stop = text.find(b"\n", end)
    return text.rfind(b"\n", 0, start) + 1, len(text) if stop < 0 else stop


def _with_neighbours(text: bytes, begin: int, stop: int) -> tuple[int, int]:
    """The byte range of some lines with the nearest lines above and below that are not blank."""
    for _ in range(NEAR_LINES):
        begin, stop = _line(text, len(text[:begin].rstrip()), len(text) - len(text[stop:].lstrip()))
    return begin, stop
