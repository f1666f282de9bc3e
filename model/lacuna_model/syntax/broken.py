"""A text that is broken whatever its gap holds: what may stand in its line, and which errors its fills may leave.

Error recovery decides what such a text means, so its tree tells nothing about a completion. But its errors can be
counted: a fill may leave no more of them than the empty gap or a neutral fill does, and leave open no bracket or
string that the neutral fill closes.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import chain, islice, product, zip_longest
from typing import NamedTuple

from tree_sitter import Point, Tree

from lacuna_model.core import work
from lacuna_model.core.work import Clock
from lacuna_model.languages.language import Language, Lexicon
from lacuna_model.languages.parsing import UnparsableError, advance
from lacuna_model.syntax.completions import completions
from lacuna_model.syntax.document import Document
from lacuna_model.syntax.faults import all_faults, tree_faults
from lacuna_model.syntax.literals import REACH, scan_tags
from lacuna_model.syntax.readable import Reading
from lacuna_model.syntax.scan import FAR, UNKNOWN, Scan, column_of, scan, scan_brackets
from lacuna_model.syntax.sides import GapLine, Sides, line_of, sides_of
from lacuna_model.syntax.unfinished import document_of
from lacuna_model.text.lines import indentation

CLOSERS = (b")", b"]", b"}")


def without_block(line: GapLine) -> bytes:
    """Return the text without a line and the block that it opens: the lines below it that are indented deeper.

    The closing bracket of that block goes, too.
    """
    below = line.below.lstrip(b"\r\n").splitlines(keepends=True)
    level = _column(line.head + line.tail + b"x")
    end = next((place for place, one in enumerate(below) if 0 <= _column(one) <= level), len(below))
    closes = end < len(below) and _column(below[end]) == level and below[end].strip()[:1] in CLOSERS
    return line.above + b"".join(below[end + closes :])


def is_laid_out(line: GapLine, fill: bytes, lexicon: Lexicon) -> bool:
    """Whether a fill fits the lines below: else it mends a bracket that another line has lost.

    If it leaves a bracket open, the line below is deeper, or the bracket is closed in the column of the fill's line; a
    fill of a whole line is no header of a block that is not indented. A bracket that it closes was not opened in a
    deeper line. From within a string it leads into no other one.
    """
    inside = scan(line.head, lexicon).inside
    if inside and inside in fill and scan(fill, lexicon, Scan(inside=inside)).inside:
        return False
    own, column = scan(fill + line.tail, lexicon, Scan(inside=inside)), column_of(line.head + fill + line.tail)
    is_whole = column > 0 and not line.head.strip()  # at the edge, the fill may lack its indentation
    if own.unmatched and is_whole and _innermost(line.above[-FAR:], lexicon) > column:
        return False
    opened = len(own.stack)
    if not opened or not line.below.strip():
        return True
    below = scan(line.below[:FAR], lexicon)
    inner = below.levels[0]
    if inner > column:
        return True
    ends = [closer.column for closer in below.unmatched[opened - 1 : opened]]
    return ends == [column] and (inner == UNKNOWN or bool(line.head.strip()))


@lru_cache(maxsize=4)
def _innermost(above: bytes, lexicon: Lexicon) -> int:
    """The column of the line that opens the innermost bracket which is open after a text; ``UNKNOWN`` without one."""
    stack = scan_brackets(above, lexicon).stack
    return stack[-1].column if stack else UNKNOWN


def _column(line: bytes) -> int:
    """The column of a line's first character; ``UNKNOWN``, which is below all columns, for a blank line."""
    return column_of(line) if line.strip() else UNKNOWN


RATHER = (b"()", b" = x", b" in x")  # texts that may be missing after a name
OPENING = (b":", b" in", b" = {", b"(", b"[", b" {")
IN_TAGS = (b">", b"x>", b'x">')  # the rests of tags and strings that may have begun
IN_STRINGS = (b'x}"',)
ITEMS = (b"x:", b"- x", b"- x: x")
MAX_TAGS = 3
GUESSES = 16  # texts that complete the line as its surroundings suggest


def neutral_fills(line: GapLine, lexicon: Lexicon) -> Iterator[tuple[bytes, bytes]]:
    """Yield neutral fills, likeliest first, each with the line that it makes."""
    operand = lexicon.operand
    if not line.head.strip() and not line.tail.strip():
        more = (b"", lexicon.filler, lexicon.statement, lexicon.field, operand + b",", operand)
        for content in dict.fromkeys((*more, *lexicon.declarations)):
            yield content, line.head + content + line.tail
        return
    head = scan(line.head, lexicon)
    quote = head.inside if len(head.inside) == 1 else b""  # no quote that ends in a line below
    own = quote.strip() + b"".join(bracket.closer for bracket in reversed(head.stack))
    ends = (own, own + lexicon.body, own + b",", b"", *(own + one for one in OPENING), b",", b")")
    values = (b"", operand, lexicon.field, lexicon.statement, b"= " + operand, *(operand + one for one in RATHER))
    for value, closer in product(dict.fromkeys(values), dict.fromkeys(ends)):
        yield value + closer, line.head + value + closer + line.tail


def completed_fills(line: GapLine, language: Language) -> Iterator[tuple[bytes, bytes]]:
    """Yield texts that complete the line as its surroundings suggest, each with the line that it makes."""
    before, after = line.above + line.head, line.tail + line.below
    sides = sides_of(before, after, language.lexicon)
    for content in _completions(sides, language):
        yield content, line.head + content + line.tail


def last_fills(line: GapLine, language: Language) -> Iterator[bytes]:
    """Yield texts that complete the text before the gap as if nothing followed."""
    before = line.above + line.head
    sides = sides_of(before, b"", language.lexicon)
    return _completions(sides, language)


def _completions(sides: Sides, language: Language) -> Iterator[bytes]:
    """Completions of an empty fill, of a declared name, of a field, and of halves of tags or strings, in turn."""
    ends, lexicon = completions(sides), language.lexicon
    halves = IN_TAGS if lexicon.tags else IN_STRINGS
    begins = dict.fromkeys((b"", lexicon.operand + b" " + lexicon.operand, lexicon.field, *halves))
    found = ([begin + end for end in islice(ends(begin), GUESSES)] for begin in begins)
    for row in zip_longest(*found):
        yield from (content for content in row if content is not None)


def neutral_lines(line: GapLine, language: Language) -> Iterator[bytes]:
    """Yield lines to put in place of the gap's line."""
    indent = indentation(line.head)
    bare = line._replace(head=indent, tail=b"")
    yield from (indent + tag for tag in _openers(line, language.lexicon))
    yield from (indent + item for item in ITEMS if language.lexicon.anchors)
    yield from (whole for _, whole in chain(completed_fills(bare, language), neutral_fills(bare, language.lexicon)))


def _openers(line: GapLine, lexicon: Lexicon) -> Iterator[bytes]:
    """Tags that open the elements that end below the line."""
    lacking = scan_tags(line.below[:REACH])[1] if lexicon.tags else []
    openers = [b"<%b>" % name for name in lacking[:MAX_TAGS]]
    yield from (b"".join(openers[count::-1]) for count in range(len(openers)))


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
        return len(all_faults(tree, text, self._language))

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

    def is_as_good(own: bytes) -> bool:
        left = counts.of(own)
        return not (left.exceed(allowed) and left.exceed(fewer))

    return Demand(fill, Document(text, [gap], language, clock, in_line=True, is_as_good=is_as_good))


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
    if not language.lexicon.columns and Reading(text[: gap[0]], language).is_read:
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
