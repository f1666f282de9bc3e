"""Splits text of any language into tokens: words, operators, and line endings; blanks only lie between them."""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Literal

from lacuna_model.text.lines import CLOSER_OF, OPENER_OF, indentation, lines_of

# Operators of several characters that belong together in most languages.
_TOKEN = re.compile(r"\r\n|\n|\r|\w+|===|!==|=>|->|:=|==|!=|<=|>=|&&|\|\||\.\.\.|::|\?\.|\?\?|//|/\*|\*/|[^\w\s]")
_WORD = re.compile(r"\w")
LINE_ENDS = frozenset(("\n", "\r\n", "\r"))
QUOTES = ('"', "'", "`")
# What a token stands in.
Kind = Literal["code", "string", "comment"]
KINDS: tuple[Kind, ...] = ("code", "string", "comment")


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its character offsets in the text."""

    text: str
    start: int
    end: int

    @property
    def ends_line(self) -> bool:
        """Whether it is a line ending."""
        return self.text in LINE_ENDS


@dataclass(frozen=True)
class TokenizedText:
    """A text and its tokens."""

    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines, with their ends."""
        return lines_of(self.text, keepends=True)

    @cached_property
    def all(self) -> list[Token]:
        """The tokens in order."""
        return [Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(self.text)]

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the tokens."""
        return [token.text for token in self.all]

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The indexes of the tokens of each text."""
        found: dict[str, list[int]] = {}
        for index, text in enumerate(self.texts):
            found.setdefault(text, []).append(index)
        return found

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(self.texts)

    def bits(self, text: str) -> float:
        """Returns how much a token says about its place, in bits: rare ones say more."""
        return math.log2((len(self.all) + 2) / (self._counts[text] + 1))

    def byte_offsets(self, indexes: Sequence[int]) -> list[int]:
        """Returns where the tokens of some indexes begin in the text's UTF-8 form."""
        starts = [self.all[index].start for index in indexes]
        if self.text.isascii():
            return starts
        known, last, total = dict[int, int](), 0, 0
        for start in sorted(set(starts)):
            total += len(self.text[last:start].encode())
            known[start], last = total, start
        return [known[start] for start in starts]

    def blank(self, index: int) -> str:
        """Returns the blanks before the token of an index; that after the last token is the end of the text."""
        start = self.all[index - 1].end if index else 0
        return self.text[start : self.all[index].start if index < len(self.all) else len(self.text)]

    def line_before(self, index: int) -> str:
        """Returns the text of a token's line before it."""
        start = self.all[index].start if index < len(self.all) else len(self.text)
        return self.text[self.text.rfind("\n", 0, start) + 1 : start]

    def indent(self, index: int) -> str:
        """Returns the indentation of the line of a token; of the line before for one of an empty line."""
        while 0 < index < len(self.all) and self.all[index].ends_line:
            index -= 1
        start = self.all[index].start if index < len(self.all) else len(self.text)
        begin = max(self.text.rfind("\n", 0, start), self.text.rfind("\r", 0, start)) + 1
        return indentation(self.text[begin:], " \t")

    def index_at(self, offset: int) -> int:
        """Returns the index of the first token that ends behind a character offset."""
        return bisect_right(self.all, offset, key=attrgetter("end"))


def is_word(text: str) -> bool:
    """Whether a token is a name, a keyword or a number."""
    return bool(_WORD.match(text))


def is_name(text: str) -> bool:
    """Whether a token is a name or a keyword."""
    return is_word(text) and not text[0].isdigit()


def net(texts: Sequence[str]) -> Counter[str]:
    """Returns how many more brackets of each kind open than close, and which quotes are open."""
    found = Counter(text for text in texts if text in CLOSER_OF)
    found.subtract(OPENER_OF[text] for text in texts if text in OPENER_OF)
    quotes = {quote: texts.count(quote) % 2 for quote in QUOTES}
    return Counter({text: count for text, count in (found | quotes).items() if count})
