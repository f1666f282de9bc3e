"""Strings, comments and tags that a text leaves open."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from lacuna_model.core import work
from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.scan import literal_pattern, scan

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


TAG_REACH = 20_000  # bytes on either side of a gap
MAX_BEHIND = 3  # completions that follow the tags
VOID = frozenset(b"area base br col embed hr img input link meta param source track wbr".split())
# A value in an opening tag may contain ">". After a word, and outside all tags, "<" begins a list of types. What has
# been read is not read in another way, so a tag that does not end takes time linear in its length. It has few parts.
ATTRIBUTES = rb"(?:[^<>{}\"';()/]++|/(?!>)|\"[^\"]*+\"|'[^']*+'|\{(?:[^{}]++|\{[^{}]*+\})*+\}){0,5000}+"
TAG = re.compile(rb"<(?P<closing>/?)(?:(?P<name>[A-Za-z_][\w.:-]*+)" + ATTRIBUTES + rb")?(?P<closed>/?)>")
BEGUN = re.compile(rb"<[A-Za-z_][\w.:-]*+\s" + ATTRIBUTES + rb"\Z")
NEAR = 400  # bytes in which a tag that is not ended begins
CLOSING = re.compile(rb"</[\w.:-]*>")
HALF = re.compile(rb"</([\w.:-]*)\Z")
HALF_OPENING = re.compile(rb"<([\w.:-]*)\Z")
WORD = re.compile(rb"\w")

Completions = Callable[[bytes], Iterator[bytes]]


class Tags:
    """The tags that are open ``before`` a gap, and those that the text ``after`` it closes."""

    def __init__(self, before: bytes, after: bytes) -> None:
        self._before, self._behind = before[-TAG_REACH:], after[:TAG_REACH]
        self._opened: dict[bytes, list[bytes]] = {}  # after the beginning of a fill; cached

    @cached_property
    def _lacking(self) -> list[bytes]:
        return scan_tags(self._behind)[1]

    def open_in(self, fill: bytes) -> list[bytes]:
        """The names of the tags that are open after the beginning of a fill, outermost first."""
        if fill not in self._opened:
            self._opened[fill] = scan_tags(self._before + fill)[0]
        return self._opened[fill]

    def unclosed(self, fill: bytes) -> list[bytes]:
        """The names of the open tags that the suffix does not close, innermost first."""
        opened = self.open_in(fill)
        if not self._lacking:
            return opened[::-1]
        outer = next((place for place in reversed(range(len(opened))) if opened[place] == self._lacking[0]), None)
        return opened[:outer:-1] if outer is not None else []

    def completions(self, fill: bytes, others: Completions) -> Iterator[bytes]:
        """Yield completions that begin with the due closing tags, then the ``others`` with the right names."""
        opening = HALF_OPENING.search(self._before + fill)
        if opening is not None and self._lacking and self._lacking[0].startswith(opening[1]):
            yield self._lacking[0][len(opening[1]) :]
        open_names, half = self.unclosed(fill), HALF.search(self._before + fill)
        written = b"</" + half[1] if half is not None else b""
        for names in (open_names, open_names[:1]) if len(open_names) > 1 else (open_names,) if open_names else ():
            tags = b"".join(b"</%b>" % name for name in names)
            if half is not None and self._behind.startswith(b">"):
                tags = tags.removesuffix(b">")
            if tags.startswith(written):
                rest = tags[len(written) :]
                yield from (rest + end for end in islice(others(fill + rest), MAX_BEHIND))
        for number, other in enumerate(others(fill)):
            yield self.named(fill, other)
            if number < MAX_BEHIND and BEGUN.search((self._before + fill + other)[-NEAR:]):
                yield self.named(fill, other) + b"/>"

    def named(self, fill: bytes, completion: bytes) -> bytes:
        """A completion whose closing tags have the names of the tags that they close."""
        parts, since = list[bytes](), 0
        opened: list[bytes] | None = None
        for match in CLOSING.finditer(completion):
            part = completion[since : match.start()]
            opened = scan_tags(part, opened)[0] if opened is not None else [*self.open_in(fill + part)]
            parts += [part, b"</%b>" % opened.pop() if opened else match[0]]
            since = match.end()
        return b"".join([*parts, completion[since:]])


def scan_tags(text: bytes, opened: list[bytes] | None = None) -> tuple[list[bytes], list[bytes]]:
    """Return the names of the tags that a text leaves open, and of those that it closes without opening, in order.

    ``opened`` has those that are open before the text, and becomes those that it leaves open.
    """
    opened, lacking = [] if opened is None else opened, list[bytes]()
    for match in work.checked(TAG.finditer(text)):
        name = match["name"] or b""
        if match["closing"]:
            if name in opened:
                while opened.pop() != name:
                    pass
            else:
                lacking.append(name)
        elif not match["closed"] and name not in VOID and (opened or not WORD.match(text, match.start() - 1)):
            opened.append(name)
    return opened, lacking
