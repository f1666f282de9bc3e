"""The judge of one gap: whether a fill is valid, and the shortest text that completes the beginning of one.

What is asked of a fill is decided once, with the first proof that fails, from the text around the gap alone: the whole
text must be valid; else errors apart from the gap may stay; else, in a text that is broken without the gap's line, as
many errors as a neutral fill leaves. Where no beginning can be proved, nothing is asked before the end.
"""

import re
from collections.abc import Callable, Iterator

from lacuna_model.core import work
from lacuna_model.core.work import Clock
from lacuna_model.languages.language import Language, Lexicon
from lacuna_model.syntax.broken import (
    Gap,
    as_good_as_neutral,
    is_broken_above,
    is_broken_anyway,
    is_cut_off,
    is_laid_out,
)
from lacuna_model.syntax.completions import completions
from lacuna_model.syntax.document import Document
from lacuna_model.syntax.literals import TAG_REACH, scan_tags
from lacuna_model.syntax.sides import line_of

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
        self._document = Document(text, [gap], language, clock, in_line=in_line, strict=True)
        sides = self._document.sides()
        self._guesses, self._ends_inside = completions(sides), bool(sides.right.inside)
        self._closers = _closers(language.lexicon)
        self._is_as_good: Callable[[bytes], bool] | None = None  # what is asked of a text that is broken
        if in_line and not strict and is_cut_off(text, gap, language.lexicon):  # its blocks are not the line's to end
            self._has_decided = True
            self._count(reads=True)

    def _count(self, *, reads: bool) -> None:
        given = self._text, self._gap, self._language, self._clock
        self._is_as_good = as_good_as_neutral(*given, reads=reads)
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
        until = work.mark(seconds)
        for closing in self._closings(beginning):
            if self._in_line and b"\n" in (closing := closing.lstrip(b"\n")):
                continue
            if self._checks(beginning + closing):
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
        until = work.mark(RULED_SECONDS)
        for closing in self._closings(fill):
            if closing and self._closers.fullmatch(closing) and self._checks(fill + closing):
                return closing
            if work.reached(until) or self._clock.over:
                break
        return None

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
