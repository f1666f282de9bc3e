"""Closings: texts that may complete the beginning of a fill, the likeliest first, from all that can propose some.

Guesses from the text around the gap cost next to nothing; the grammar's tables find what they miss. Which closing is
valid is for others to check. Some closings are *due*: they only close what is open, so they may be delivered.
"""

import re
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, islice

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.text.columns import REACH, open_lines
from lacuna_model.syntax.text.literals import finish_token
from lacuna_model.syntax.text.minimal_completions import Closer, unseen
from lacuna_model.syntax.text.nested import completed, nested_in

# Closing brackets, quotes and marks, tags, and the marks that separate what they enclose.
DUE = rb"\r?\n|[)\]};,\"'`]|\*/"
BLANKS = rb"[ \t]"  # where blocks are columns, these say to which one the suffix belongs
TAGS = rb">|\?>|-->|</[\w.:-]*>"

UNIT = 4  # columns of a block that has none yet


class Closings:
    """The closings of the fills of a document's only gap, between the texts ``before`` and ``after``."""

    def __init__(self, document: Document, before: bytes, after: bytes) -> None:
        self._document, self._before = document, before[-REACH:]
        self._nested = nested_in(document.language, before, after)
        self._closer = Closer(document.sides(0))
        self.due = _pattern(document.language.lexicon)

    def of(self, text: bytes) -> Iterator[bytes]:
        """Yield closings of the beginning of a fill that cost little to find."""
        return unseen(self._of(text), set())

    def _of(self, text: bytes) -> Iterator[bytes]:
        if self._closer.ends_inside:
            yield b""
        repairs, guesses = self._repairs(text), completed(self._closer.completions, self._nested)(text)
        yield from islice(repairs, 1)
        yield from islice(guesses, 1)
        yield from _in_turns(repairs, repairs, chain(self._clauses(text), guesses))

    def _repairs(self, text: bytes) -> Iterator[bytes]:
        """Closings by the grammar where a valid fill is known; an open string is ended first."""
        inside = self._closer.open_ends(text)[1]
        half = finish_token(text, inside)
        starts = list(dict.fromkeys([half, inside, b""] if half else [inside, b""]))
        if b"**/" in starts and self._closer.ends_inside:
            yield b"*"
        for start in starts:
            for closing in self._document.repairs(0, text + start):
                for nested in self._nested:
                    closing = nested.named(text + start, closing)
                yield start + closing

    def _clauses(self, text: bytes) -> Iterator[bytes]:
        """Closings that end every open ``try`` where blocks are columns, the innermost first."""
        whole = self._before + text
        opened = open_lines(whole, UNIT) if self._document.language.columns else []
        tries = [line.column for line in reversed(opened) if line.word == b"try"]
        if not tries:
            return
        mark = b"\t" if b"\n\t" in whole else b" "
        clauses = b"".join(b"\n" + mark * column + b"finally: pass" for column in tries)
        line = whole.rpartition(b"\n")[2]
        body = (mark * opened[-1].column)[len(line) :] if not line.strip() else b" "
        for start in (b"", body + b"pass"):
            yield start + clauses
            yield start + clauses + b"\n"

    def bridges(self, text: bytes) -> Iterator[bytes]:
        """Yield closings that lead from the stacks before the gap to the terminals after it: a long search."""
        junction = self._junction
        return junction.completions(text) if junction is not None else iter(())

    @cached_property
    def _junction(self) -> Closer | None:
        return self._document.junction()


def _pattern(lexicon: Lexicon) -> re.Pattern[bytes]:
    """The pattern of closings that only close."""
    words = [rb"\b%s\b" % re.escape(closer) for _, closer, _ in lexicon.blocks]
    marks = [re.escape(closer) for _, closer in (*lexicon.block_comment, *lexicon.raw)]
    blanks, tags = [] if lexicon.columns else [BLANKS], [TAGS] if lexicon.tags else []
    return re.compile(b"(?:" + b"|".join([DUE, *blanks, *tags, *words, *marks]) + b")*")


def _in_turns(*sources: Iterator[bytes]) -> Iterator[bytes]:
    """Yield one item of each source in turn; no source is asked before its turn."""
    waiting = deque(sources)
    while waiting:
        source = waiting.popleft()
        for found in islice(source, 1):
            yield found
            waiting.append(source)
