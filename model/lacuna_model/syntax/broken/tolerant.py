"""A text that is broken whatever its gap holds.

Error recovery decides what such a text means, so its tree tells nothing about a completion. But its errors can be
counted: a fill may leave no more of them than the empty gap or a neutral fill does, and leave open no bracket or string
that the neutral fill closes.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from tree_sitter import Point, Tree

from lacuna_model.core import work
from lacuna_model.core.work import Clock
from lacuna_model.languages.language import Language, Lexicon
from lacuna_model.languages.parsing import UnparsableError, advance
from lacuna_model.syntax.broken.neutral import (
    completed_fills,
    is_laid_out,
    last_fills,
    neutral_fills,
    neutral_lines,
    without_block,
)
from lacuna_model.syntax.broken.unfinished import document_of
from lacuna_model.syntax.check.document import Check, Document
from lacuna_model.syntax.check.error_set import Fault, tree_faults
from lacuna_model.syntax.check.indentation import indentation_faults
from lacuna_model.syntax.readable import Reading
from lacuna_model.syntax.text.balance import GapLine, line_of
from lacuna_model.syntax.text.literals import REACH, scan_tags
from lacuna_model.syntax.text.scan import Scan, scan

WORD = re.compile(rb"\w")
NEAR = 8000  # bytes on each side of the gap in which brackets are counted
LARGE = 16_000  # bytes; a larger text is parsed incrementally
MAX_FILLS = 20  # neutral ones, beside those that complete the line as its surroundings suggest
MAX_LINES = 32
LEAST_TRIED = 12
MAX_SECONDS = 0.4  # of work, to try neutral fills and lines
Gap = tuple[int, int]


class Demand(NamedTuple):
    """What is asked of a gap's fills: a ``neutral`` one, and the document that checks them if errors may stay."""

    neutral: bytes
    document: Document | None = None


class Errors(NamedTuple):
    """The errors of a text: those of its tree, brackets without their other half, and an open string at its end."""

    faults: int
    brackets: int
    unclosed: bool
    inside: bytes

    def exceed(self, other: "Errors") -> bool:
        """Whether some kind of error is more frequent than in another text."""
        return (
            self.faults > other.faults
            or self.brackets > other.brackets
            or self.unclosed > other.unclosed
            or self.inside not in (b"", other.inside)
        )


class _Counts:
    """Counts the errors of a text with different contents in its gap."""

    def __init__(self, text: bytes, gap: Gap, language: Language) -> None:
        self._front, self._rear = text[: gap[0]], text[gap[1] :]
        self._language, self._parser = language, language.parser()

    @cached_property
    def _left(self) -> Scan:
        near = self._front[-NEAR:] if len(self._front) <= NEAR else self._front[-NEAR:].partition(b"\n")[2]
        return replace(scan(near, self._language.lexicon), unclosed=False)

    @cached_property
    def _base(self) -> tuple[Tree, Point]:
        """The tree of the text with an empty gap, and the gap's place."""
        return self._parser.parse(self._front + self._rear), advance(Point(0, 0), self._front)

    def faults(self, fill: bytes) -> int:
        """The number of errors in the tree of the text with a fill."""
        text = self._front + fill + self._rear
        known: Tree | None = None
        if len(text) > LARGE:
            tree, point = self._base
            known, start = tree.copy(), len(self._front)
            known.edit(start, start, start + len(fill), point, point, advance(point, fill))
        tree = self._parser.parse(text, known)
        return len(tree_faults(tree)) + (len(indentation_faults(tree, text)) if self._language.columns else 0)

    def of(self, fill: bytes) -> Errors:
        """All errors of the text with a fill."""
        state = scan(fill + self._rear[:NEAR], self._language.lexicon, self._left)
        return Errors(self.faults(fill), len(state.stack) + len(state.unmatched), state.unclosed, state.inside)


def tolerant(
    text: bytes, gap: Gap, language: Language, clock: Clock | None = None, *, in_line: bool = True
) -> Demand | None:
    """Return what is asked if a text is cut off, or has errors whatever its gap or its line holds.

    The document tolerates the errors that the text has with an empty gap or a neutral fill. There is none if a neutral
    fill is valid. The result is None if only another line would be valid.
    """
    try:
        return _find(text, gap, language, clock or Clock(), in_line=in_line)
    except UnparsableError:
        return None


def _find(text: bytes, gap: Gap, language: Language, clock: Clock, *, in_line: bool) -> Demand | None:
    line, lexicon = line_of(text, *gap), language.lexicon
    until, counts = work.mark(MAX_SECONDS), _Counts(text, gap, language)
    document = document_of(text, [gap], language, clock, in_line=in_line)
    bare = counts.of(b"")
    best: tuple[tuple[int, bool, bool, int], Errors, bytes] | None = None
    plain = ((one, line.head + one + line.tail) for one in (lexicon.operand, b"0", lexicon.field, lexicon.statement))
    neutral = islice(neutral_fills(line, lexicon), MAX_FILLS)
    fills = chain(plain, neutral, completed_fills(line, language))
    for number, (fill, whole) in enumerate(fills):
        is_possible = not in_line or (b"\n" not in fill and is_laid_out(line, fill, lexicon))
        if is_possible and document.check([fill]).valid and document.check_fresh([fill]).valid:
            return Demand(fill)
        errors, own = counts.of(fill), scan(whole, lexicon)
        loose, is_worse = len(own.stack) + len(own.unmatched), errors.faults > bare.faults
        rank = loose, is_worse, WORD.search(fill) is None, len(fill)
        best = (rank, errors, fill) if best is None or rank < best[0] else best
        if clock.over or (number >= LEAST_TRIED and work.reached(until)):
            break
    if best is None or not (_is_cut_off(line, lexicon) or _is_broken_anyway(line, text, language, clock)):
        return None
    _, errors, fill = best
    end = lexicon.terminator if scan(line.head, lexicon).stack else b""  # a statement with open brackets may end
    allowed = errors._replace(faults=max(bare.faults, errors.faults, counts.faults(fill + end)))
    fewer = bare._replace(faults=min(allowed.faults, bare.faults) - 1)  # it mends a part of what another line breaks
    return Demand(fill, Tolerant(text, gap, language, clock, counts, (allowed, fewer)))


def is_broken_without_line(text: bytes, gap: Gap, language: Language, clock: Clock) -> bool:
    """Whether the text has errors with each of some other lines in place of the gap's own.

    No line is taken for the one that closes a bracket which is open above and nothing below closes.
    """
    line, lexicon = line_of(text, *gap), language.lexicon
    if len(scan(line.above, lexicon).stack) > len(scan(line.below, lexicon).unmatched):
        return True
    tried = _Tried(text, (len(line.above), len(text) - len(line.below)), language, clock)
    return tried.leaves_errors(neutral_lines(line, language))


def is_broken_before(text: bytes, gap: Gap, language: Language, clock: Clock) -> bool:
    """Whether the text before a gap has errors whatever follows: its grammar cannot read it, and nothing ends it.

    A reader of statements, where blocks are columns, cannot tell.
    """
    if not language.columns and Reading(text[: gap[0]], language).is_read:
        return False
    return _is_broken_before(line_of(text, *gap), language, clock)


def _is_cut_off(line: GapLine, lexicon: Lexicon) -> bool:
    """Whether the text ends with the gap's line, in brackets or elements that were open before it."""
    is_open = scan(line.above, lexicon).stack or (lexicon.tags and scan_tags(line.above[-REACH:])[0])
    return bool(is_open) and not line.below.strip()


def _is_broken_anyway(line: GapLine, text: bytes, language: Language, clock: Clock) -> bool:
    """Whether the text has errors whatever its gap's line is, or the text before the gap has some whatever follows.

    What belongs in its place may be hard to guess, so errors must remain without the block that it opens, too. False if
    the clock is over before.
    """
    if _is_broken_before(line._replace(head=b""), language, clock):
        return True
    whole = _Tried(text, (len(line.above), len(text) - len(line.below)), language, clock)
    remain = bool(tree_faults(language.parser().parse(without_block(line))))
    return remain and (whole.leaves_errors(neutral_lines(line, language)) or _is_broken_before(line, language, clock))


def _is_broken_before(line: GapLine, language: Language, clock: Clock) -> bool:
    """Whether the text before the gap has errors whatever follows."""
    text = line.above + line.head
    before = _Tried(text, (len(text), len(text)), language, clock)
    return before.leaves_errors(last_fills(line, language))


class _Tried:
    """Looks for contents of a gap, laid out as the lines below demand, that leave no errors in the text's tree."""

    def __init__(self, text: bytes, gap: Gap, language: Language, clock: Clock) -> None:
        self._line, self._lexicon = line_of(text, *gap), language.lexicon
        self._counts, self._clock = _Counts(text, gap, language), clock

    def leaves_errors(self, fills: Iterable[bytes]) -> bool:
        """Whether the text has errors with each of some fills, of which at least the first are tried."""
        until = work.mark(MAX_SECONDS)
        likely = (fill for fill in islice(fills, MAX_LINES) if is_laid_out(self._line, fill, self._lexicon))
        for number, fill in enumerate(likely):
            if number >= LEAST_TRIED and work.reached(until):
                break
            if self._clock.over or not self._counts.faults(fill):
                return False
        return not self._clock.over


class Tolerant(Document):
    """A document of one gap whose fills may leave as many errors as a neutral fill does, or others if these are fewer.

    No tree tells how to complete a fill, so completions are guessed from the text around the gap.
    """

    def __init__(
        self, text: bytes, gap: Gap, language: Language, clock: Clock, counts: _Counts, allowed: Sequence[Errors]
    ) -> None:
        super().__init__(text, [gap], language, clock, in_line=True)
        self._counts, self._allowed = counts, allowed

    @property
    def idle(self) -> bool:
        """Whether the unchanged text would be valid: never, since it is what is to be completed."""
        return False

    def check(self, fills: Sequence[bytes]) -> Check:
        """Compare the errors with each of those that are allowed."""
        errors = self._counts.of(fills[0])
        is_valid = not all(errors.exceed(one) for one in self._allowed)
        return Check(frozenset() if is_valid else frozenset({Fault("ERROR", *self.spans(fills)[0])}))

    check_fresh = check

    def relax(self, *, broken_before: bool) -> None:
        """Nothing more: errors are tolerated from the beginning."""
