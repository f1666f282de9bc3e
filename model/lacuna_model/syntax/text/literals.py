"""Strings and comments: the positions of those that span lines, and the one in which a text begins or ends."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.scan import MULTILINE_QUOTES, literal_pattern, scan, string_end

# A line of code that is rare in prose. PROSE and CODE bound the shares of such lines (``_code_share``) that do not
# decide between code and prose; two shares decide if they differ by CLEAR.
STATEMENT = re.compile(
    rb"[ \t]*(?:[#)\]}]|[\w.\[\], ]+ [-+*/|&]?= |(?:return|import|raise|assert|yield|pass|break|continue|@)\b|[\w.]+\(|"
    rb"(?:if|for|while|try|else|elif|except|finally|with|def|class)\b.*:[ \t]*(?:#.*)?$|from \S+ import |"
    rb"(?:async )?def \w+\(|\*{0,2}[\w.]+: \w[\w.]*(?: \| [\w.]+)*(?:\[.*\](?: \| [\w.]+)*)?(?: = .*|,)$|"
    rb".*(?:[\"'\]}],|[(\[{])$)"
)
WORDS = re.compile(rb"[\s*]*(?:[^\s;{}=]+ )*?[A-Za-z'`,-]+(?: [a-z'`,-]+){3}")
DOCTEST = re.compile(rb"[ \t]*(?:>>> |\.\.\. |:\w+[ :])")
PROSE, CODE = 0.0, 0.4
CLEAR = 0.2
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


def find_literals(text: bytes, lexicon: Lexicon, inside: bytes = b"") -> Literals:
    """Return the literals of a text that starts ``inside`` one, given by its closer."""
    pattern, closers = literal_pattern(lexicon)
    end = string_end(text, inside) if inside else 0
    if end is None:
        return Literals(((-1, len(text)),), inside if len(inside) > 1 or inside in MULTILINE_QUOTES else b"")
    start = end
    spans = [(-1, start)] if inside else []
    open_end = b""
    for match in pattern.finditer(text, start):
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


def carried_quote(piece: bytes, before: bytes, lexicon: Lexicon) -> bytes:
    """The closer of the string or comment that a text between two gaps begins in.

    ``before`` is the closer of the one that the first gap begins in. The gaps may have removed quotes. An even number
    of quotes in the text means that it begins outside, an odd number that it begins or ends inside. Whether the lines
    read like code or prose decides which, also for a text without quotes. If they do not decide, the text begins inside
    if the first gap does, or if a line end or closing mark follows the first triple quote.
    """
    comment = open_comment(piece, lexicon) or _comment_around(piece, before, lexicon)
    if comment:
        return comment
    bare = _without_comments(piece, lexicon)
    for quote in lexicon.quotes:
        if quote in MULTILINE_QUOTES and _begins_inside(bare, quote, before):
            return quote
    return open_quote(piece.split(b"\n", 1)[0] + b"\n", lexicon)


def _comment_around(piece: bytes, before: bytes, lexicon: Lexicon) -> bytes:
    """The closer of a comment if a text without comment marks reads like the middle of one; else ""."""
    lines = [line for line in piece.split(b"\n") if line.strip()]
    for begin, end in lexicon.block_comment:
        if begin in piece or end in piece or not lines:
            continue
        if any(line.lstrip().startswith(lexicon.line_comment) for line in lines):
            continue
        marked = all(line.lstrip().startswith(b"*") for line in lines)
        prose = sum(bool(WORDS.match(line)) for line in lines)
        code = sum(line.rstrip().endswith((b";", b"{", b"}", b",")) for line in lines)
        if marked or (prose > code and 2 * prose >= len(lines) and (before == end or len(lines) > 2)):
            return end
    return b""


def _without_comments(text: bytes, lexicon: Lexicon) -> bytes:
    """A text without its block comments, whose quotes mean nothing; the last of them may be open."""
    for begin, end in lexicon.block_comment:
        text = re.sub(re.escape(begin) + rb".*?(?:" + re.escape(end) + rb"|\Z)", b"", text, flags=re.DOTALL)
    return text


def _begins_inside(piece: bytes, quote: bytes, before: bytes) -> bool:
    long = len(quote) == 3
    if long and (told := _begins_in_prose(piece, quote)) is not None:
        return told
    if piece.count(quote) % 2 == 0:
        return quote == before and quote not in piece
    after = piece.find(quote) + len(quote)
    return quote == before or (long and piece[after : after + 1] in b"\r\n),.;]")


def _begins_in_prose(piece: bytes, quote: bytes) -> bool | None:
    """Whether a text between gaps begins inside a docstring, judged by its lines; None if they do not decide.

    The quotes split it into parts that are code and prose in turn.
    """
    if quote not in piece and any(len(other) == 3 and other in piece for other in MULTILINE_QUOTES):
        return False
    parts = piece.split(quote)
    first, other = _code_share(parts[0::2]), _code_share(parts[1::2])
    if first is not None and other is not None:
        return None if abs(first - other) < CLEAR else first < other
    if first is not None:
        return None if PROSE <= first <= CODE else first < PROSE
    return None if other is None or PROSE <= other <= CODE else other > CODE


def _code_share(parts: Sequence[bytes]) -> float | None:
    """The share of lines that read like code minus the share that read like prose; None for less than two lines."""
    lines = [line for part in parts for line in part.split(b"\n") if line.strip()]
    code = sum(bool(STATEMENT.match(line)) or -bool(WORDS.match(line) or DOCTEST.match(line)) for line in lines)
    return code / len(lines) if len(lines) > 1 else None
