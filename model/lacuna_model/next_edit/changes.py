"""Texts as tokens, and what was changed between two of them: places of lines, and exchanges of tokens within them.

Text of any language is words, operators, and line endings; blanks only lie between them.
"""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Literal

from lacuna_model.core import work
from lacuna_model.languages.language import Language
from lacuna_model.text import diff
from lacuna_model.text.diff import Hunk
from lacuna_model.text.lines import CLOSER_OF, OPENER_OF, indentation, lines_of

# Operators of several characters that belong together in most languages.
_TOKEN = re.compile(r"\r\n|\n|\r|\w+|===|!==|=>|->|:=|==|!=|<=|>=|&&|\|\||\.\.\.|::|\?\.|\?\?|//|/\*|\*/|[^\w\s]")
_WORD = re.compile(r"\w")
LINE_ENDS = frozenset(("\n", "\r\n", "\r"))
QUOTES = ('"', "'", "`")
# What a token stands in.
Kind = Literal["code", "string", "comment"]
KINDS: tuple[Kind, ...] = ("code", "string", "comment")
MAX_TOKENS = 400  # a larger change is no rule for others
MAX_COMPARED = 2_000_000  # pairs of equal items: about a second
COMPARED_NS = 400  # nominal nanoseconds: the work of a pair


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


def hunks(old: str, new: str) -> list[Hunk]:
    """Returns the places of lines in which two texts differ.

    Where a comparison of all lines would take long, lines that occur once in both texts are compared first, and then
    what stands between them. Where that would still take long, it is one place.
    """
    return _differing(lines_of(old, keepends=True), lines_of(new, keepends=True))


def _differing(old: Sequence[str], new: Sequence[str], *, whole: bool = True) -> list[Hunk]:
    """Returns the places in which lines differ; of those between others that are the same if they are not ``whole``."""
    lead, tail = diff.common_ends(old, new)
    old, new = old[lead : len(old) - tail], new[lead : len(new) - tail]
    if comparable(old, new):
        found = diff.hunks(old, new)
    elif whole and (anchors := diff.in_order(diff.once(old, new))):
        found, start, new_start = [], 0, 0
        for row, new_row in [*anchors, (len(old), len(new))]:
            between = _differing(old[start:row], new[new_start:new_row], whole=False)
            found += [hunk.moved(start, new_start) for hunk in between]
            start, new_start = row + 1, new_row + 1
    else:
        found = [Hunk(0, len(old), 0, len(new))]
    return [hunk.moved(lead, lead) for hunk in found]


def comparable(old: Sequence[str], new: Sequence[str]) -> bool:
    """Returns whether ``SequenceMatcher`` compares two sequences in bounded time.

    It may look at all pairs of equal items once for each run of equal items that it finds.
    """
    others = Counter(new)
    pairs = sum(others[item] for item in old) * min(len(old), len(new))
    work.spend(min(pairs, MAX_COMPARED) * COMPARED_NS)
    return pairs <= MAX_COMPARED


@dataclass(frozen=True)
class RecentChange:
    """One change: a hunk of two texts, in a ``language`` whose scopes tell variables of one name apart."""

    old: TokenizedText
    new: TokenizedText
    hunk: Hunk
    language: Language | None = None

    @classmethod
    def at(cls, old: str, new: str, row: int, language: Language | None = None) -> "RecentChange | None":
        """The change that is nearest to a line of the new text; None where the texts are the same."""
        found = hunks(old, new)
        hunk = min(found, key=lambda one: max(one.new_start - row, row - one.new_end + 1, 0), default=None)
        return cls(TokenizedText(old), TokenizedText(new), hunk, language) if hunk is not None else None

    @cached_property
    def old_span(self) -> tuple[int, int]:
        """The indexes of the hunk's tokens in the old text."""
        return _span(self.old, self.hunk.start, self.hunk.end)

    @cached_property
    def new_span(self) -> tuple[int, int]:
        """The indexes of the hunk's tokens in the new text."""
        return _span(self.new, self.hunk.new_start, self.hunk.new_end)

    @cached_property
    def lines(self) -> tuple[str, str]:
        """The old and the new lines of the hunk, without blanks at their ends."""
        hunk = self.hunk
        texts = self.old.lines[hunk.start : hunk.end], self.new.lines[hunk.new_start : hunk.new_end]
        return "".join(texts[0]).strip(), "".join(texts[1]).strip()

    @cached_property
    def exchanges(self) -> list[Hunk]:
        """The exchanges of tokens in order; none for a change of blanks alone, or one that is too large."""
        (a, b), (c, d) = self.old_span, self.new_span
        if max(b - a, d - c) > MAX_TOKENS:
            return []
        before, after = self.old.texts[a:b], self.new.texts[c:d]
        if not comparable(before, after):
            return []
        return [hunk.moved(a, c) for hunk in diff.hunks(before, after)]


def _span(tokens: TokenizedText, start: int, end: int) -> tuple[int, int]:
    """Returns the token indexes of a range of lines."""
    first = sum(map(len, tokens.lines[:start]))
    last = first + sum(map(len, tokens.lines[start:end]))
    return tokens.index_at(first), tokens.index_at(last)
