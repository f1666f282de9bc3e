"""Strings and comments: the positions of those that span lines, and the one in which a text begins or ends."""

import re
from bisect import bisect_right
from dataclasses import dataclass

from lacuna_model.core import work
from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.scan import literal_pattern, scan

REACH = 6000  # bytes after a gap in which a comment's closer is searched


@dataclass(frozen=True, slots=True)
class Literals:
    """The strings and comments of a text that span lines, and the closer of the one that is open at its end."""

    spans: tuple[tuple[int, int], ...]
    inside: bytes

    def hold(self, place: int) -> bool:
        """Whether a position is inside one of them."""
        index = bisect_right(self.spans, (place, place)) - 1
        return index >= 0 and self.spans[index][0] < place < self.spans[index][1]


def find_literals(text: bytes, lexicon: Lexicon) -> Literals:
    """Return the literals of a text."""
    pattern, closers = literal_pattern(lexicon)
    spans: list[tuple[int, int]] = []
    open_end = b""
    for match in work.checked(pattern.finditer(text)):
        kind = match.lastgroup or ""
        if kind.startswith("open"):
            open_end = closers[int(kind[4:])]
        elif kind.startswith("note") and match.end() == len(text):
            open_end = b"\n"
        if b"\n" in match.group():
            spans.append(match.span())
    return Literals(tuple(spans), open_end)


def open_comment(text: bytes, lexicon: Lexicon) -> bytes:
    """The closer of a comment or raw string that a text begins in: it comes before any opener, in no other string."""
    for begin, end in (*lexicon.block_comment, *lexicon.raw):
        place = _find_closer(text, end, lexicon)
        line = text[text.rfind(b"\n", 0, max(place, 0)) + 1 : max(place, 0)]
        opened = re.search(rb"(?<![\w*/\"'`])" + re.escape(begin), text[: max(place, 0)])
        if place >= 0 and not opened and not scan(line, lexicon).inside:
            return end
    return b""


def _find_closer(text: bytes, end: bytes, lexicon: Lexicon) -> int:
    """The first position of a comment's closer in no string or regular expression; -1 for none within reach."""
    pattern = literal_pattern(lexicon)[0]
    place = text.find(end, 0, REACH)
    while place >= 0:
        start, stop = text.rfind(b"\n", 0, place) + 1, text.find(b"\n", place)
        found = pattern.finditer(text, start, stop if stop >= 0 else len(text))
        if not any(one.start() < place < one.end() for one in found if (one.lastgroup or "").startswith("atom")):
            break
        place = text.find(end, place + len(end), REACH)
    return place


def open_quote(text: bytes, lexicon: Lexicon) -> bytes:
    """The quote of a string that a text begins in: its first line, or the whole text, has one quote too many."""
    for quote in lexicon.quotes:
        if len(quote) == 3 and text.count(quote) % 2 and find_literals(text, lexicon).inside == quote:
            return quote
    line = text.split(b"\n", 1)[0]
    if scan(line + b"\n", lexicon).unclosed:
        for quote in lexicon.quotes:
            place = line.find(quote) if len(quote) == 1 else -1
            if place >= 0 and not scan(line[place + 1 :] + b"\n", lexicon).unclosed:
                return quote
    return b""
