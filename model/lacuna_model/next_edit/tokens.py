"""Splits text of any language into tokens: words, operators, and line endings; blanks only lie between them."""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
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


@dataclass(frozen=True)
class TokenizedText:
    """A text and its tokens."""

    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines, with their ends."""
        return lines_of(self.text, keepends=True)

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the tokens."""
        return _TOKEN.findall(self.text)

    @cached_property
    def starts(self) -> list[int]:
        """Where each token begins, in characters, and where the text ends."""
        return [*(match.start() for match in _TOKEN.finditer(self.text)), len(self.text)]

    @cached_property
    def ends(self) -> list[int]:
        """Where the blanks before each token begin, and those behind the last one."""
        return [0, *(match.end() for match in _TOKEN.finditer(self.text))]

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The indexes of the tokens of each text."""
        found: dict[str, list[int]] = {}
        for index, text in enumerate(self.texts):
            found.setdefault(text, []).append(index)
        return found

    def bits(self, text: str) -> float:
        """Returns how much a token says about its place, in bits: rare ones say more."""
        return math.log2((len(self.texts) + 2) / (len(self.places.get(text, ())) + 1))

    def byte_offsets(self, indexes: Sequence[int]) -> list[int]:
        """Returns where the tokens of some indexes, in order, begin in the text's UTF-8 form."""
        starts = [0, *(self.starts[index] for index in indexes)]
        return [*accumulate(len(self.text[start:end].encode()) for start, end in pairwise(starts))]

    def blank(self, index: int) -> str:
        """Returns the blanks before the token of an index; that after the last token is the end of the text."""
        return self.text[self.ends[index] : self.starts[index]]

    def line_start(self, offset: int) -> int:
        """Returns where the line of a character offset begins."""
        return self.text.rfind("\n", 0, offset) + 1

    def line_before(self, index: int) -> str:
        """Returns the text of a token's line before it."""
        start = self.starts[index]
        return self.text[self.line_start(start) : start]

    def indent(self, index: int) -> str:
        """Returns the indentation of the line of a token; of the line before for one of an empty line."""
        while 0 < index < len(self.texts) and self.texts[index] in LINE_ENDS:
            index -= 1
        start = self.starts[index]
        begin = max(self.text.rfind("\n", 0, start), self.text.rfind("\r", 0, start)) + 1
        return indentation(self.text[begin:], " \t")

    def index_at(self, offset: int) -> int:
        """Returns the index of the first token that ends behind a character offset."""
        return bisect_right(self.ends, offset, 1) - 1


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
