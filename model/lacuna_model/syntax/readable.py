"""Open delivery: a fill that can be read after what stands before it, and holds only what the model wrote.

A person types. Brackets may be open above the cursor that nothing closes below, so nothing after the gap is asked of
the fill, and nothing is put in. The fill ends before the first token that the grammar cannot read.
"""

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Self

from lacuna_model.core import work
from lacuna_model.core.constraint import Constraint, FillSoFar, Run, Taken, TokenText, Verdict
from lacuna_model.core.work import Allowance, OverBudgetError
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import TOO_LONG, UnparsableError
from lacuna_model.syntax.completions import CLAUSES
from lacuna_model.syntax.lr_stacks import Prefix, parse_table
from lacuna_model.syntax.scan import MULTILINE_QUOTES, Scan, scan, scan_brackets
from lacuna_model.syntax.sides import scan_left
from lacuna_model.text.lines import indentation

WORD = re.compile(rb"\w+")
WORD_BYTES = b"_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
HALF_NUMBER = re.compile(rb"(?<!\w)(?:[\d_.]*\d[eE][+-]?|0[xXbBoO])\Z")
# Their strings may go on in the next line. The scan does not follow: an apostrophe in a text would swallow the rest.
LONG_STRINGS = frozenset({"bash", "csharp", "php", "ruby", "yaml"})
WHOLE = (b")", b"]", b"}", b";", b",")  # no longer word begins with these
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="readable")
# A statement may end before it, go on behind it, or begin in the lines above.
UNSURE = re.compile(rb"#|\"\"\"|'''|[\\,]\Z")
FAR_UP = 100  # lines above a gap in which the beginning of its statement is searched


class Reading:
    """Tells whether the beginning of a fill can be read after ``before``; what the grammar cannot tell reads.

    Where blocks are columns, each statement is read alone, since the text does not hold the ends of blocks.
    """

    def __init__(self, before: bytes, language: Language) -> None:
        self._before, self._language = before, language
        begun = before.rstrip(WORD_BYTES) if language.lexicon.blocks else before
        self._word = before[len(begun) :]  # the fill may make a closer of it: `done` of `d`
        self._start = scan_left(begun, language.lexicon)
        self._scans: dict[bytes, Scan] = {}
        self._state = self._scan(b"")
        self._known: dict[bytes, bool] = {b"": True}
        self._takes_too_long = False  # to ask the grammar

    @classmethod
    def begun(cls, before: bytes, language: Language) -> Self:
        """One that has read ``before`` already, which takes tens of milliseconds; it has an allowance of its own.

        Raises UnparsableError if even the brackets of a text take too long.
        """
        try:
            with work.allowed(Allowance()), work.bounded():
                found = cls(before, language)
                found.is_read  # noqa: B018  # reads
                return found
        except OverBudgetError as error:
            raise UnparsableError(TOO_LONG) from error

    @property
    def is_read(self) -> bool:
        """Whether the grammar can read ``before``; True, too, where it has no tables."""
        return self._asked(lambda: self._prefix is not None or parse_table(self._language) is None)

    def reads(self, fill: bytes) -> bool:
        """Whether a text can begin the fill. Its last word may still become a longer one."""
        ends = [match.end() for match in re.finditer(rb"\n", fill)]
        return all(self._ends_well(fill[:end]) for end in dict.fromkeys((*ends, len(fill))))

    def _scan(self, fill: bytes) -> Scan:
        """The state after the beginning of a fill."""
        if fill not in self._scans:
            self._scans[fill] = scan(self._word + fill, self._language.lexicon, self._start)
        return self._scans[fill]

    def _ends_well(self, fill: bytes) -> bool:
        if fill not in self._known:
            looks_well = self._is_balanced(fill) and self.is_at_its_column(fill)
            self._known[fill] = looks_well and self._asked(lambda: self._is_grammatical(fill))
        return self._known[fill]

    def _is_balanced(self, fill: bytes) -> bool:
        """Whether a fill closes only brackets that are open, and ends no line within a string of one line.

        The value of an attribute may go on in the next line.
        """
        state = self._scan(fill)
        may_go_on = self._language.lexicon.tags or self._language.name in LONG_STRINGS
        torn = state.unclosed > self._state.unclosed and not may_go_on
        return len(state.unmatched) <= len(self._state.unmatched) and not torn

    def is_at_its_column(self, fill: bytes) -> bool:
        """Whether the line that a fill ends in is deeper than the statement above it just where that is a header.

        Only where blocks are columns. True for a line that the fill has not begun, and where the statement above may
        begin in a string or comment.
        """
        text = self._before + fill
        line = text[text.rfind(b"\n") + 1 :]
        if not self._language.lexicon.columns or len(line) > len(fill) or line.lstrip()[:1] in (b"", b"#"):
            return True
        above = text[: len(text) - len(line)].rstrip()
        last = above[above.rfind(b"\n") + 1 :]
        state = self._scan(fill[: len(fill) - len(line)])
        if state.stack or state.inside or not last or UNSURE.search(last):
            return True
        inner, outer = (indentation(one, b" \t") for one in (line, _statement_lines(above, self._language, 0)[0]))
        deeper = len(inner) > len(outer) and inner.startswith(outer)
        return deeper == last.endswith(b":")

    def _asked(self, grammar: Callable[[], bool]) -> bool:
        """What the grammar says; True where that takes too long, now and later."""
        try:
            return self._takes_too_long or grammar()
        except OverBudgetError:
            self._takes_too_long = True
            return True

    def _is_grammatical(self, fill: bytes) -> bool:
        if self._prefix is None or (self._language.lexicon.columns and self._scan(fill).inside in MULTILINE_QUOTES):
            return True
        try:
            return any(self._is_read(self._prefix, self._text(fill), end) for end in self._ends(fill))
        except UnparsableError:  # what stands before the fill was parsed
            return False

    def _ends(self, fill: bytes) -> Iterator[bytes]:
        """Texts that may end what a fill has begun: error recovery misreads the middle of an unfinished construct."""
        state, lexicon = self._scan(fill), self._language.lexicon
        closers = b"".join(reversed(state.closers))
        yield state.inside + closers
        yield b""
        yield lexicon.operand + closers
        if HALF_NUMBER.search(fill):
            yield b"0" + closers
        if lexicon.conditionals:  # the name of a header, perhaps
            yield b">" + closers
        if lexicon.atoms and b"'" not in lexicon.quotes:  # a character, perhaps
            yield b"'" + closers
        if lexicon.atoms:  # a regular expression, perhaps
            yield b"]/" + closers
            yield b"/" + closers

    def _is_read(self, prefix: Prefix, text: bytes, end: bytes) -> bool:
        """Whether the grammar can read a text before ``end`` up to its last word, which may become another one."""
        read = prefix.read(text + end)
        return bool(read[-1].stacks) or (read[-1].end >= len(text) and not text.endswith(WHOLE))

    @cached_property
    def _prefix(self) -> Prefix | None:
        """Reads texts that begin with ``before``; None if the grammar cannot read that."""
        table = parse_table(self._language)
        if table is None or (self._language.lexicon.columns and self._state.inside):
            return None
        prefix, begun = Prefix(self._language, table), self._text(b"")
        return prefix if any(self._is_read(prefix, begun, end) for end in self._ends(b"")) else None

    def _text(self, fill: bytes) -> bytes:
        """What the grammar reads for a fill: all, or, where blocks are columns, the statement that it ends in.

        That stands at the left edge, with a header before a clause that needs one.
        """
        text = self._before + fill
        if not self._language.lexicon.columns:
            return text
        lines = _statement_lines(text.removesuffix(b"\n"), self._language, len(self._scan(fill).stack))
        statement = b"\n".join(lines) + b"\n" * text.endswith(b"\n")
        word = WORD.match(statement.lstrip())
        header = CLAUSES.get(word[0]) if word else None
        return (header + b"\n pass\n" if header else b"") + statement.lstrip(b" \t")


def _statement_lines(text: bytes, language: Language, depth: int) -> list[bytes]:
    """The lines of the statement that a text ends in, which has opened all ``depth`` brackets that are open there."""
    lines = text.split(b"\n")
    first = 0
    for first in range(len(lines) - 1, max(len(lines) - FAR_UP, -1), -1):
        found = scan_brackets(b"\n".join(lines[first:]), language.lexicon)
        if len(found.stack) == depth and not found.unmatched and not (first and lines[first - 1].endswith(b"\\")):
            break
    return lines[first:]


class Readable(Constraint):
    """The constraint of open delivery, for gaps that stand alone in their requests.

    The text before the gap is read in another thread, while the model reads the context; it is not read any more if
    the constraint is dropped before.
    """

    active = True

    def __init__(self, before: bytes, language: Language, tokens: TokenText) -> None:
        super().__init__(tokens)
        self._reading: Future[Reading] = _THREADS.submit(Reading.begun, before, language)
        weakref.finalize(self, self._reading.cancel)

    def take(self, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        """The run up to the first token that cannot be read; there the fill ends."""
        (fill,), tokens = fills, run.tokens
        with work.bounded():
            for place, token in enumerate(tokens):
                if token != self._tokens.eog_id and not self._reads(fill, [*fill.tokens, *tokens[: place + 1]]):
                    self.stats.vetoes += 1
                    return Taken(len(fill.tokens) + place, ends=True)
        return super().take(gap, fills, run)

    def verdict(self, fills: Sequence[FillSoFar], *, late: bool) -> Verdict:
        """The fill up to the first token that cannot be read; if ``late``, the whole lines of an unfinished one."""
        (fill,) = fills
        written = list(fill.tokens)
        with work.bounded():
            while written and not self._reads(fill, written):
                written.pop()
        cut = FillSoFar(tuple(written), fill.most, fill.ended, fill.prefix)
        return super().verdict((cut,), late=late)

    def _reads(self, fill: FillSoFar, written: Sequence[int]) -> bool:
        """Whether what is written can be read; False, too, if it takes too long to tell."""
        text = self._tokens.decode_bytes(written)[len(fill.prefix) :]
        try:
            return self._reading.result().reads(text.decode(errors="ignore").encode())
        except OverBudgetError:
            return False
