"""The text on both sides of a gap: the strings, tags, brackets and blocks that it leaves open, and those it closes."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

from lacuna_model.core import work
from lacuna_model.languages.language import Lexicon
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.scan import (
    FAR,
    TOP_LEVEL,
    UNKNOWN,
    Bracket,
    Scan,
    coming_lines,
    literal_pattern,
    scan,
    scan_brackets,
    shared,
    string_end,
)

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


BEHIND = 4000
MAX_KEPT = 16
OPENERS = {b")": b"(", b"]": b"[", b"}": b"{", b">": b"<"}
HEADED = frozenset({b"}", b"]"})
STATEMENT = re.compile(
    rb"\s*(?:@|(?:async|await|assert|break|class|continue|def|del|for|from|global|if|import|nonlocal|pass|raise|return|"
    rb"try|while|with|yield)\b)"
)
PROSE = re.compile(rb" ?[\w'`,.()-]+ [a-z'`-]+ [a-z'`,.-]+(?: [a-z]|\Z)")
BINARY = re.compile(rb"\s*(?:[-+*/%&|^<>=!?]|(?:and|or|in|is|not in|if|instanceof|as)\b)")
# Code that continues the text before it, even from the line above.
CONTINUES = re.compile(
    rb"\s*(?:\?\.|\.(?=[\w(])|\?(?=\s)|&&|\|\||[-+*%^|](?=\s)|/(?=\s)|[=!]=|<<|>>|(?:as|instanceof)\b)"
)
CONTINUES_IN_BRACKETS = re.compile(CONTINUES.pattern + rb"|\s*(?:and|or|in|is|if|else|for)\b")


def header_for(text: bytes) -> bytes:
    """The header that the lines up to the next top-level statement need around them, judged by their words."""
    words = set(re.findall(rb"\b(?:continue|break|return|yield|await)\b", text))
    loops = words & {b"continue", b"break"}
    function = b"async def x():" if b"await" in words else b"def x():" if words - loops else b""
    return function or (b"while x:" if loops else b"if x:")


class RightSide:
    """The text after a gap: the rest of its line, and the brackets and strings that it closes.

    ``unmatched`` are its closers without an opener, innermost first; ``whole`` is true if there can be no more of them
    further on. ``inside`` is the closer of the string or comment that the text begins in. ``header`` is true if the
    line is the header of an indented block, ``statement`` if it begins as only a statement does, ``prose`` if
    it reads like the end of a comment. ``coming`` are the lines after the statement's last bracket, ``head`` the
    header of a block that they may be in.
    """

    def __init__(self, text: bytes, lexicon: Lexicon) -> None:
        stop = TOP_LEVEL.search(text, 0, BEHIND) if lexicon.columns else None
        window = text[: stop.start() if stop else BEHIND]
        self.lexicon, self.text = lexicon, text
        self.rest = text.split(b"\n", 1)[0]
        self.inside = open_comment(text, lexicon) or open_quote(text, lexicon)
        start = string_end(window, self.inside) or 0 if self.inside else 0
        near = scan(window[start:], lexicon, Scan(column=UNKNOWN))
        is_far = len(window) < len(text) and not lexicon.columns
        self.unmatched = (scan_brackets(text[start:FAR], lexicon) if is_far else near).unmatched
        self.whole = stop is not None or len(text) <= (BEHIND if lexicon.columns else FAR)
        self.blank = not self.rest.strip()
        self.statement = bool(STATEMENT.match(self.rest))
        self.prose = bool(PROSE.match(self.rest)) and not self.inside and not self.statement
        statement_end = start + (near.unmatched[-1].end if near.unmatched else 0)
        after_statement = text[statement_end:] if lexicon.columns else text
        code = scan(after_statement.split(b"\n", 1)[0], lexicon)
        self.header = lexicon.columns and code.last == b":" and not code.stack
        self.coming = coming_lines(after_statement)
        self.head = header_for(window)

    @property
    def margin(self) -> int:
        """The number of leading spaces in the rest of the line, if a statement can begin after them; else 0."""
        blank = len(self.rest) - len(self.rest.lstrip(b" "))
        # An indented "if" begins a statement; after a single blank it is a conditional expression.
        operator = BINARY.match(self.rest) and not (blank > 1 and self.statement)
        return blank if not self.blank and not self.inside and not operator else 0

    def openings(self, closers: Sequence[bytes], *, outside: bool = False) -> list[bytes]:
        """Return the openers of the brackets and the quote that the suffix closes, with texts that may precede them.

        If they are ``outside`` all brackets, the outermost block needs a head. The likeliest come first.
        """
        lexicon = self.lexicon
        words = {closer: head + b"\n" for _, closer, head in reversed(lexicon.blocks)}
        parts = [OPENERS[mark] if mark in OPENERS else words[mark] for mark in closers]
        parts = [lexicon.operand + part if part == b"(" else part for part in parts]
        continuing = CONTINUES_IN_BRACKETS if lexicon.columns else CONTINUES  # where a line break means nothing
        goes_on = self.rest[:1] == b"," or BINARY.match(self.rest) or continuing.match(self.text)
        end = lexicon.operand if closers and not self.inside and goes_on else b""
        end += lexicon.opener_of(self.inside)
        if self.blank and not end and parts:
            parts[-1] = parts[-1].rstrip()  # the suffix begins with a line end
        headed = [place for place, mark in enumerate(closers) if mark in HEADED]
        if not headed:
            return [b"".join(parts) + end]
        if outside and len(headed) > 1 and lexicon.heads:
            parts[headed[0]] = lexicon.heads[0] + parts[headed[0]]
        heads = dict.fromkeys((*lexicon.heads[: outside and len(headed) == 1], b"", *lexicon.heads))
        before, after = b"".join(parts[: headed[-1]]), b"".join(parts[headed[-1] :])
        return [before + head + after + end for head in heads]


@lru_cache(maxsize=MAX_KEPT)
def right_side(text: bytes, lexicon: Lexicon) -> RightSide:
    """Return the text after a gap; cached, since every search needs the same one."""
    return RightSide(text, lexicon)


class GapLine(NamedTuple):
    """The line with the gap: the text above, the parts of the line before and after the gap, and the text below."""

    above: bytes
    head: bytes
    tail: bytes
    below: bytes


def line_of(text: bytes, start: int, end: int) -> GapLine:
    """The line with the gap from ``start`` to ``end``."""
    begin, stop = text.rfind(b"\n", 0, start) + 1, text.find(b"\n", end)
    stop = len(text) if stop < 0 else stop
    return GapLine(text[:begin], text[begin:start], text[end:stop], text[stop:])


# Bytes that are scanned token by token; in text further away only brackets are counted.
WINDOW = 6000
MAX_BRACKETS = 500  # brackets on one side of a gap; real files have up to 40
Brackets = tuple[Bracket, ...]


class Sides:
    """The surroundings of a gap: the ``text`` before it, the ``left`` scan of that, and the ``right`` side."""

    def __init__(self, text: bytes, left: Scan, right: RightSide) -> None:
        self.text, self.left, self.right = text, left, right

    @cached_property
    def targets(self) -> Sequence[Brackets]:
        """The brackets that the gap may leave open, outermost first; the likeliest come first.

        All closers have their openers then; or the first one, at the beginning of a line, belongs to the bracket of its
        kind in the same column. Where the text after the gap goes on too far, it may close all.
        """
        stack, lacking = self.left.stack, self.right.unmatched
        wanted = lacking[::-1]
        kept = shared(stack, wanted)
        found = [(*stack[:kept], *wanted[kept:])]
        if not self.right.whole:
            found.insert(0, stack)
        if lacking and lacking[0].leads:
            first = lacking[0].closer, lacking[0].column
            alike = (end for end in range(len(stack), 0, -1) if (stack[end - 1].closer, stack[end - 1].column) == first)
            if end := next(alike, 0):
                found.insert(0 if lacking[0].column else 1, stack[:end])
        return list(dict.fromkeys(found))

    @cached_property
    def below(self) -> "Sides":
        """The sides without the rest of the line after the gap."""
        return Sides(self.text, self.left, RightSide(self.right.text[len(self.right.rest) :], self.right.lexicon))


def sides_of(before: bytes, after: bytes, lexicon: Lexicon) -> Sides:
    """Return the sides of a gap between two texts. Raises UnparsableError for too many brackets."""
    right = right_side(after, lexicon)
    _limit(right.unmatched)
    return Sides(before, scan_left(before, lexicon), right)


def scan_left(text: bytes, lexicon: Lexicon) -> Scan:
    """The state at a gap, from the text before it. Raises UnparsableError for too many brackets."""
    literals = find_literals(text, lexicon)
    start = Scan(fresh=True)
    near = max(len(text) - WINDOW, 0)
    begin = _line_outside(text, near, literals)
    if lexicon.columns:  # there, the next top-level statement closes every block
        tops = (match.end() for match in TOP_LEVEL.finditer(text, near))
        begin = max((top for top in tops if not literals.hold(top)), default=begin)
    elif begin:
        first = _line_outside(text, max(begin - FAR, 0), literals)
        start = replace(start, stack=scan_brackets(text[first:begin], lexicon).stack)
    _limit(start.stack)
    found = scan(text[begin:], lexicon, start)
    _limit(found.stack)
    return replace(found, inside=literals.inside)


def _limit(brackets: Sequence[Bracket]) -> None:
    """Raise UnparsableError for more brackets than any file has: to close them all is tried many times."""
    if len(brackets) > MAX_BRACKETS:
        raise UnparsableError(f"over {MAX_BRACKETS} brackets are open around the gap")


def _line_outside(text: bytes, offset: int, literals: Literals) -> int:
    """The first start of a line from an offset on that is not inside a string."""
    if offset == 0:
        return 0
    lines = (match.end() for match in re.finditer(rb"\n", text[offset:]))
    return next((offset + place for place in lines if not literals.hold(offset + place)), len(text))
