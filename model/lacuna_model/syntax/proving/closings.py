"""Closings: texts that may complete the beginning of a fill, the likeliest first, from the text around the gap.

Which closing is valid is for others to check. Some closings are *due*: they only close what is open, so they may be
delivered.
"""

import re
from collections.abc import Iterator
from itertools import islice

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.text.columns import REACH, open_lines
from lacuna_model.syntax.text.minimal_completions import completions, unseen

# Closing brackets, quotes and marks, tags, and the marks that separate what they enclose.
DUE = rb"\r?\n|[)\]};,\"'`]|\*/"
BLANKS = rb"[ \t]"  # where blocks are columns, these say to which one the suffix belongs
TAGS = rb">|\?>|-->|</[\w.:-]*>"

UNIT = 4  # columns of a block that has none yet


class Closings:
    """The closings of the fills of a document's only gap, which follows the text ``before``."""

    def __init__(self, document: Document, before: bytes) -> None:
        self._before, self._columns = before[-REACH:], document.language.columns
        sides = document.sides(0)
        self._ends_inside = bool(sides.right.inside)
        self._guesses = completions(sides)
        self.due = _pattern(document.language.lexicon)

    def of(self, text: bytes) -> Iterator[bytes]:
        """Yield closings of the beginning of a fill."""
        return unseen(self._of(text), set())

    def _of(self, text: bytes) -> Iterator[bytes]:
        if self._ends_inside:
            yield b""
        guesses = self._guesses(text)
        yield from islice(guesses, 1)
        yield from self._clauses(text)
        yield from guesses

    def _clauses(self, text: bytes) -> Iterator[bytes]:
        """Closings that end every open ``try`` where blocks are columns, the innermost first."""
        whole = self._before + text
        opened = open_lines(whole, UNIT) if self._columns else []
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


def _pattern(lexicon: Lexicon) -> re.Pattern[bytes]:
    """The pattern of closings that only close."""
    words = [rb"\b%s\b" % re.escape(closer) for _, closer, _ in lexicon.blocks]
    marks = [re.escape(closer) for _, closer in (*lexicon.block_comment, *lexicon.raw)]
    blanks, tags = [] if lexicon.columns else [BLANKS], [TAGS] if lexicon.tags else []
    return re.compile(b"(?:" + b"|".join([DUE, *blanks, *tags, *words, *marks]) + b")*")
