"""The judge of one gap: whether a fill is valid, and the shortest text that completes the beginning of one.

What is asked of a fill is decided once, with the first proof that fails, from the text around the gap alone: the whole
text must be valid; else errors apart from the gap may stay; else, in a text that is broken without the gap's line, as
many errors as a neutral fill leaves. Where no beginning can be proved, nothing is asked before the end.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple

from tree_sitter import Tree

from lacuna_model.core import work
from lacuna_model.core.work import Clock
from lacuna_model.languages.language import Language, Lexicon
from lacuna_model.languages.parsing import UnparsableError, edited
from lacuna_model.syntax.completions import completions
from lacuna_model.syntax.document import Document
from lacuna_model.syntax.faults import all_faults
from lacuna_model.syntax.readable import Reading
from lacuna_model.syntax.scan import FAR, UNKNOWN, Scan, column_of, scan, scan_brackets
from lacuna_model.syntax.sides import REACH, TAG_REACH, GapLine, line_of, scan_tags, sides_of

CLOSERS = (b")", b"]", b"}")
NEAR = 8000  # bytes on each side of the gap in which brackets are counted
LARGE = 16_000  # bytes; a larger text is parsed incrementally
WORD = re.compile(rb"\w")
GUESSES = 24  # neutral fills that are tried
MAX_SECONDS = 0.4  # of work, to try them
Gap = tuple[int, int]


def _without_block(line: GapLine) -> bytes:
    """The text without a line and the block that it opens: the lines below it that are indented deeper.

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
    deeper line, a block that it closes not behind other words. From within a string it leads into no other one.
    """
    inside = scan(line.head, lexicon).inside
    if inside and inside in fill and scan(fill, lexicon, Scan(inside=inside)).inside:
        return False
    own, column = scan(fill + line.tail, lexicon, Scan(inside=inside)), column_of(line.head + fill + line.tail)
    if own.unmatched and column > 0 and not line.head.strip():  # at the edge, the fill may lack its indentation
        behind = own.unmatched[fill.lstrip()[:1] == b"}" :]
        ends_block = bool(behind) and behind[0].closer == b"}"
        if ends_block or _innermost(line.above[-FAR:], lexicon) > column:
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


class _Errors(NamedTuple):
    """The errors of a text: those of its tree, brackets without their other half, and an open string at its end."""

    faults: int
    brackets: int
    unclosed: bool
    inside: bytes

    def exceed(self, other: "_Errors") -> bool:
        """Whether some kind of error is more frequent than in another text."""
        more = self.faults > other.faults or self.brackets > other.brackets or self.unclosed > other.unclosed
        return more or self.inside not in (b"", other.inside)


class _Counts:
    """Counts the errors of a text with different contents in its gap."""

    def __init__(self, text: bytes, gap: Gap, language: Language) -> None:
        self._front, self._rear = text[: gap[0]], text[gap[1] :]
        self._language, self._parser = language, language.parser()
        near = self._front[-NEAR:] if len(self._front) <= NEAR else self._front[-NEAR:].partition(b"\n")[2]
        self._left = replace(scan(near, language.lexicon), unclosed=False)

    @cached_property
    def _base(self) -> Tree:
        """The tree of the text with an empty gap."""
        return self._parser.parse(self._front + self._rear)

    def of(self, fill: bytes) -> _Errors:
        """All errors of the text with a fill."""
        text = self._front + fill + self._rear
        known = edited(self._base, self._front, b"", fill) if len(text) > LARGE else None
        faults = all_faults(self._parser.parse(text, known), text, self._language)
        state = scan(fill + self._rear[:NEAR], self._language.lexicon, self._left)
        return _Errors(len(faults), len(state.stack) + len(state.unmatched), state.unclosed, state.inside)


def is_cut_off(text: bytes, gap: Gap, lexicon: Lexicon) -> bool:
    """Whether the text ends with the gap's line, in brackets or elements that were open before it."""
    line = line_of(text, *gap)
    if line.below.strip():
        return False
    return bool(scan(line.above, lexicon).stack or (lexicon.tags and scan_tags(line.above[-REACH:])[0]))


def is_broken_anyway(text: bytes, gap: Gap, language: Language) -> bool:
    """Whether the text has errors even without the gap's line and the block that it opens."""
    rest = _without_block(line_of(text, *gap))
    try:
        return bool(all_faults(language.parser().parse(rest), rest, language))
    except UnparsableError:
        return False


def is_broken_above(text: bytes, gap: Gap, language: Language) -> bool:
    """Whether the grammar cannot read the text before a gap; where blocks are columns, that is not known."""
    return not (language.lexicon.columns or Reading(text[: gap[0]], language).is_read)


def as_good_as_neutral(
    text: bytes, gap: Gap, language: Language, clock: Clock, *, reads: bool
) -> Callable[[bytes], bool]:
    """What tells whether a fill leaves no more errors than the empty gap, or than a neutral fill.

    And whether it can be read (``reads``) behind what stands above, if that can; where the text ends with the gap's
    line, also before the closers of what is open above, unless it goes on in a next line.
    """
    lexicon, counts, until = language.lexicon, _Counts(text, gap, language), work.mark(MAX_SECONDS)
    before, after, line = text[: gap[0]], text[gap[1] :], line_of(text, *gap)
    guesses = completions(sides_of(before, after, lexicon))(b"")
    bare, found = counts.of(b""), list[tuple[tuple[int, bool, bool, int], _Errors, bytes]]()
    for fill in islice(chain((lexicon.operand, lexicon.statement), guesses), GUESSES):
        with suppress(UnparsableError):
            errors, own = counts.of(fill), scan(line.head + fill + line.tail, lexicon)
            loose = len(own.stack) + len(own.unmatched)
            found.append(((loose, errors.faults > bare.faults, WORD.search(fill) is None, len(fill)), errors, fill))
        if clock.over or work.reached(until):
            break
    _, allowed, fill = min(found, key=itemgetter(0), default=((), bare, b""))
    end = lexicon.terminator if scan(line.head, lexicon).stack else b""  # a statement with open brackets may end
    allowed = allowed._replace(faults=max(bare.faults, allowed.faults, counts.of(fill + end).faults))

    reading = Reading(before, language) if reads else None
    closers = () if line.below.strip() else scan(line.above, lexicon).closers[::-1]  # innermost first

    def is_read(fill: bytes) -> bool:
        if reading is None or not reading.is_read:
            return True
        whole, due = fill + line.tail + b"\n", b""
        if closers and not whole.rstrip().endswith(b","):
            due = b"".join(closers[len(scan(line.head + whole, lexicon).unmatched) :])
        ended = due.replace(b")}", b")" + lexicon.terminator + b"}")  # the statement that a line is in
        return any(reading.reads(whole + one) for one in dict.fromkeys((due, ended)))

    if closers and not any(map(is_read, dict.fromkeys((fill, fill + end, *(one for _, _, one in found))))):
        closers = ()  # it is not known what has to stand here

    def is_as_good(fill: bytes) -> bool:
        try:
            return is_read(fill) and not counts.of(fill).exceed(allowed)
        except UnparsableError:
            return False

    return is_as_good


PROOF_SECONDS = 0.03  # of work, for one proof
DECIDE_SECONDS = 2.0  # of work, to decide what is asked
RUNG_SECONDS = 0.4  # of work, to find out whether a demand can be met at all
RULED_SECONDS = 0.02  # of work, to find one

# Closing brackets, quotes and marks, tags, and the marks that separate what they enclose.
DUE = rb"\r?\n|[)\]};,\"'`]|\*/"
BLANKS = rb"[ \t]"  # where blocks are columns, these say to which one the suffix belongs
TAGS = rb">|\?>|-->|</[\w.:-]*>"


class Judge:
    """Checks and completes the fills of a ``gap`` of a ``text``; ``in_line`` if they are one line.

    ``strict``: errors of the text may not stay.
    """

    def __init__(
        self, text: bytes, gap: Gap, language: Language, clock: Clock, *, in_line: bool, strict: bool = False
    ) -> None:
        self._text, self._gap, self._language, self._clock = text, gap, language, clock
        self._in_line, self._strict = in_line, strict
        self._has_decided = False
        self._proofs: dict[bytes, bytes | None] = {}
        self._valid: dict[bytes, bool] = {}
        self._asks, self._is_broken = True, False
        self.name = re.compile(rb"\b%s\b" % re.escape(language.lexicon.operand))  # which a proof has for any
        if in_line and b"\n" not in text[gap[1] :]:
            text += b"\n"  # as an editor adds it: a directive of C needs it
        self._document = Document(text, [gap], language, in_line=in_line, strict=True)
        sides = sides_of(text[: gap[0]], text[gap[1] :], language.lexicon)
        self._guesses, self._ends_inside = completions(sides), bool(sides.right.inside)
        self._closers = _closers(language.lexicon)
        self._is_as_good: Callable[[bytes], bool] | None = None  # what is asked of a text that is broken
        if in_line and not strict and is_cut_off(text, gap, language.lexicon):  # its blocks are not the line's to end
            self._has_decided = True
            self._count(reads=True)

    def _count(self, *, reads: bool) -> None:
        self._is_as_good = as_good_as_neutral(self._text, self._gap, self._language, self._clock, reads=reads)
        self._forget()

    def holds(self, fill: bytes) -> bool:
        """Whether a complete fill is valid; decides first what is asked of it, if it would not be."""
        return self._checks(fill) or (self.decide() and self._checks(fill))

    def is_valid(self, fill: bytes) -> bool:
        """Whether a complete fill is valid, by what is asked of fills now; False once the call is over."""
        return not self._clock.over and self._checks(fill)

    def _checks(self, fill: bytes) -> bool:
        if fill not in self._valid:
            self._valid[fill] = self._is_as_good(fill) if self._is_as_good else not self._document.check([fill])
        return self._valid[fill]

    def final(self, fill: bytes) -> bool:
        """Whether a fresh parse of the whole text, and the language's compiler, accept a fill."""
        return self._is_as_good(fill) if self._is_as_good else not self._document.check_fresh([fill])

    def close(self, beginning: bytes) -> bytes | None:
        """The text that completes the beginning of a fill, as a proof that there is one; None where none is found.

        Where nothing is asked, the proof is empty.
        """
        found = self._proof(beginning)
        if found is None and self.decide():
            found = self._proof(beginning)
        return b"" if not self._asks else found

    def stand_in(self) -> bytes | None:
        """The shortest fill with which the whole text is valid, whatever is asked of fills; None if none is found."""
        return self._search(b"")

    def _closings(self, beginning: bytes) -> Iterator[bytes]:
        """Texts to put behind the beginning of a fill."""
        if self._ends_inside:
            yield b""
        yield from self._guesses(beginning)

    def _proof(self, beginning: bytes) -> bytes | None:
        if beginning not in self._proofs:
            self._proofs[beginning] = self._search(beginning)
        return self._proofs[beginning]

    def _search(self, beginning: bytes, seconds: float = PROOF_SECONDS) -> bytes | None:
        """The first closing that is valid, of those that are tried; nothing comes first."""
        if beginning and self._checks(beginning):
            return b""
        closings = self._closings(beginning)
        if self._in_line:
            closings = (one.lstrip(b"\n") for one in closings if b"\n" not in one.lstrip(b"\n"))
        return self._first(beginning, closings, seconds)

    def _first(self, fill: bytes, closings: Iterable[bytes], seconds: float) -> bytes | None:
        """The first of some closings with which a fill is valid; None where so much work finds none."""
        until = work.mark(seconds)
        for closing in closings:
            if self._checks(fill + closing):
                return closing
            if work.reached(until) or self._clock.over:
                return None
        return None

    def closers_after(self, fill: bytes) -> bytes | None:
        """The shortest text to put after a fill that the model has ended so that it is valid: closers that are due.

        A fill that would hold nothing else is none.
        """
        if self.holds(fill):
            return b""
        if not fill.strip():
            return None
        due = (one for one in self._closings(fill) if one and self._closers.fullmatch(one))
        return self._first(fill, due, RULED_SECONDS)

    @property
    def is_broken(self) -> bool:
        """Whether the text has errors around the gap whatever its fill is: what precedes it may be misread."""
        self.decide()
        return self._is_broken

    def decide(self) -> bool:
        """Decide what is asked of the fills, once; returns whether that was decided now."""
        if self._has_decided:
            return False
        self._has_decided = True
        self._clock.begin(DECIDE_SECONDS)
        self._asks = self._checks(b"") or any(self._may_be_valid() for _ in self._rungs())
        return True

    def _may_be_valid(self) -> bool:
        """Whether some fill is found that is valid, laid out as the lines below demand."""
        lexicon, line = self._language.lexicon, line_of(self._text, *self._gap)
        lacking = scan_tags(line.below[:TAG_REACH])[1] if lexicon.tags else []
        found = self._search(b"", RUNG_SECONDS)
        if found is not None and (not self._in_line or is_laid_out(line, found, lexicon)):
            return True
        heads = (*lexicon.heads, *lexicon.declarations, *(b"<%b>" % name for name in lacking[:1]))
        return any(is_laid_out(line, head, lexicon) and self._checks(head) for head in heads)

    def _rungs(self) -> Iterator[None]:
        """Take one demand after the other."""
        yield
        if not self._strict and self._document.original.apart:
            self._document.strict = False
            self._forget()
            yield
        self._is_broken = True
        if self._strict:
            return
        given = self._text, self._gap, self._language
        lines = self._in_line and is_broken_anyway(*given)  # several lines may mend more than can be told
        if lines or any(fault.kind != "INDENT" for fault in self._document.original.lasting) or is_broken_above(*given):
            self._count(reads=not lines)
            yield

    def _forget(self) -> None:
        self._proofs.clear()
        self._valid.clear()


def _closers(lexicon: Lexicon) -> re.Pattern[bytes]:
    """The pattern of closings that only close."""
    words = [rb"\b%s\b" % re.escape(closer) for _, closer, _ in lexicon.blocks]
    marks = [re.escape(closer) for _, closer in (*lexicon.block_comment, *lexicon.raw)]
    blanks, tags = [] if lexicon.columns else [BLANKS], [TAGS] if lexicon.tags else []
    return re.compile(b"(?:" + b"|".join([DUE, *blanks, *tags, *words, *marks]) + b")*")
