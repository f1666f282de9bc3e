"""A lexical scan that needs no parse: open brackets, open strings and the head of the current line.

It runs on text that is not finished, where a parser only sees errors. It guesses; what is built on it is verified.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lacuna_model.syntax.languages import Lexicon

# Read token by token; what lies further away is read for its brackets alone, up to FAR.
WINDOW = 6000
FAR = 64_000
TOP_LEVEL = re.compile(rb"\n(?=[^\s)\]}\"'#])(?!(?:end|else|elsif|elif|fi|done|esac|then|do)\b)")
MULTILINE_QUOTES = (b'"""', b"'''", b"`")


@dataclass(frozen=True, slots=True)
class Scan:
    """Where a text stands at its end.

    ``stack`` holds the closers that open brackets wait for, outermost first; ``unmatched`` the closers that had no
    opener; ``inside`` the closer of a string or comment that is open. ``last`` is the last token that is no space
    (empty at the start of a line), ``head`` the first word of the line that is not inside parentheses. ``body_due``
    is the indentation of a header whose block has not begun, ``indent`` that of the line. ``unclosed`` says whether a
    line ended in a string, ``unmatched_end`` where the last closer without an opener ended, ``whole`` whether brackets
    were counted from where none is open.
    """

    stack: tuple[bytes, ...] = ()
    unmatched: tuple[bytes, ...] = ()
    inside: bytes = b""
    last: bytes = b""
    head: bytes = b""
    header_open: bool = False
    body_due: bytes | None = None
    indent: bytes = b""
    unclosed: bool = False
    unmatched_end: int = 0
    whole: bool = True


@lru_cache(maxsize=32)
def _literals(lexicon: Lexicon) -> tuple[re.Pattern[bytes], tuple[bytes, ...]]:
    """The pattern of comments and strings, and the closer of each ``open<i>`` group in it."""
    closers: list[bytes] = []
    parts: list[bytes] = []
    for begin, end in lexicon.block_comment:
        parts.append(b"(?P<skip%d>%s.*?%s)" % (len(parts), re.escape(begin), re.escape(end)))
        parts.append(b"(?P<open%d>%s.*)" % (len(closers), re.escape(begin)))
        closers.append(end)
    for mark in lexicon.line_comment:
        parts.append(b"(?P<note%d>%s[^\\n]*)" % (len(parts), re.escape(mark)))
    parts += [b"(?P<atom%d>%s)" % (len(parts) + place, atom) for place, atom in enumerate(lexicon.atoms)]
    for quote in lexicon.quotes:
        plain = rb"(?:\\.|(?!%s).)*" if quote in MULTILINE_QUOTES else rb"(?:\\.|(?!%s)[^\n])*"
        body = re.escape(quote) + plain % re.escape(quote)
        parts.append(b"(?P<atom%d>%s%s)" % (len(parts), body, re.escape(quote)))
        parts.append(b"(?P<open%d>%s\\Z)" % (len(closers), body))
        parts.append(b"(?P<torn%d>%s(?=\\n))" % (len(closers), body))
        closers.append(quote)
    return re.compile(b"|".join(parts) or b"(?!)", re.DOTALL), tuple(closers)


@lru_cache(maxsize=32)
def _pattern(lexicon: Lexicon) -> re.Pattern[bytes]:
    """The token pattern of a language."""
    opening = re.escape(b"".join(pair[:1] for pair in lexicon.brackets))
    closing = re.escape(b"".join(pair[1:] for pair in lexicon.brackets))
    parts = [
        _literals(lexicon)[0].pattern,
        rb"(?P<newline>\r?\n)",
        b"(?P<left>[%s])" % opening,
        b"(?P<right>[%s])" % closing,
        rb"(?P<word>[\w$@\x80-\xff]+)",
        rb"(?P<blank>[^\S\n]+|\\\r?\n)",
        rb"(?P<mark>.)",
    ]
    return re.compile(b"|".join(parts), re.DOTALL)


@lru_cache(maxsize=32)
def _bracket_pattern(lexicon: Lexicon) -> re.Pattern[bytes]:
    """Literals, brackets and nothing else: between them the search runs at the speed of ``re``."""
    return re.compile(_literals(lexicon)[0].pattern + b"|[%s]" % re.escape(b"".join(lexicon.brackets)), re.DOTALL)


def scan_brackets(text: bytes, lexicon: Lexicon) -> Scan:
    """The brackets that are open behind a text, and its closers without an opener; nothing else is looked at."""
    pairs = {pair[:1]: pair[1:] for pair in lexicon.brackets}
    stack: list[bytes] = []
    unmatched: list[bytes] = []
    for match in _bracket_pattern(lexicon).finditer(text):
        if match.lastgroup is not None:
            continue
        mark = match.group()
        if mark in pairs:
            stack.append(pairs[mark])
        elif stack and stack[-1] == mark:
            stack.pop()
        else:
            unmatched.append(mark)
    return Scan(stack=tuple(stack), unmatched=tuple(unmatched))


def scan(text: bytes, lexicon: Lexicon, before: Scan | None = None) -> Scan:
    """The state at the end of a text that follows one scanned ``before``."""
    state = before or Scan()
    if state.inside:
        end = text.find(b"\n") if state.inside == b"\n" else string_end(text, state.inside)
        if end is None or end < 0:
            return state
        last = state.last if state.inside == b"\n" else b'"'
        text, state = text[end:], replace(state, inside=b"", last=last)
    closers = _literals(lexicon)[1]
    walk = _Walk(state, lexicon)
    for match in _pattern(lexicon).finditer(text):
        walk.token(match, closers)
    return walk.state()


def string_end(text: bytes, closer: bytes) -> int | None:
    """Where a string that a text begins in ends, behind its closer; None where it does not."""
    for match in re.finditer(rb"\\.|" + re.escape(closer) + (b"" if closer in MULTILINE_QUOTES else b"|\n"), text):
        if match.group() == closer:
            return match.end()
        if match.group() == b"\n" and len(closer) == 1:
            return match.start()
    return None


class _Walk:
    """The scan's running state; one method per kind of token."""

    def __init__(self, state: Scan, lexicon: Lexicon) -> None:
        self._start = state
        self._lexicon = lexicon
        self._pairs = {pair[:1]: pair[1:] for pair in lexicon.brackets}
        self._opening_words = {opener: closer for opener, closer, _ in lexicon.blocks}
        self._closing_words = frozenset(self._opening_words.values())
        self._stack = list(state.stack)
        self._unmatched = list(state.unmatched)
        self._inside = state.inside
        self._last = state.last
        self._head = state.head
        self._header_open = state.header_open
        self._body_due = state.body_due
        self._indent = state.indent
        self._line_start = not state.last
        self._unclosed = state.unclosed
        self._unmatched_end = 0

    def token(self, match: re.Match[bytes], closers: Sequence[bytes]) -> None:
        """Takes in one token of the pattern."""
        kind, text = match.lastgroup or "", match.group()
        if kind == "newline":
            self._newline()
        elif kind == "blank":
            if self._line_start:
                self._indent = text
        elif kind.startswith("torn"):
            self._unclosed = True
            self._visible("atom", text, match.end())
        elif kind.startswith("open"):
            self._inside = closers[int(kind[4:])]
        elif kind.startswith("note") and match.end() == len(match.string):
            self._inside = b"\n"
        elif not kind.startswith(("skip", "note")):
            self._visible(kind, text, match.end())

    def _newline(self) -> None:
        if self._stack and self._stack[-1] in (b")", b"]"):
            return
        if self._last == b":" and self._head in self._lexicon.headers:
            self._body_due = self._indent
        self._last, self._head, self._header_open = b"", b"", False
        self._line_start, self._indent = True, b""

    def _visible(self, kind: str, text: bytes, end: int) -> None:
        if not self._head:
            self._head = text
            self._header_open = text in self._lexicon.headers
            self._body_due = None
        self._line_start = False
        if kind == "word":
            self._block_word(text, end)
        elif kind == "left":
            self._stack.append(self._pairs[text])
        elif kind == "right":
            if self._stack and self._stack[-1] == text:
                self._stack.pop()
            else:
                self._unmatched.append(text)
                self._unmatched_end = end
        elif text == b":" and not (self._stack and self._stack[-1] in (b")", b"]", b"}")):
            self._header_open = False
        self._last = text

    def _block_word(self, word: bytes, end: int) -> None:
        """Takes blocks of words for brackets; behind something else on its line the word may be a mere modifier."""
        if word in self._closing_words:
            if self._stack and self._stack[-1] == word:
                self._stack.pop()
            else:
                self._unmatched.append(word)
                self._unmatched_end = end
        elif word in self._opening_words and (self._head == word or self._opens_anywhere(word)):
            self._stack.append(self._opening_words[word])

    def _opens_anywhere(self, word: bytes) -> bool:
        # in Ruby a loop's head has opened the block that its "do" only announces
        return word == b"function" or (word == b"do" and self._head not in self._opening_words)

    def state(self) -> Scan:
        """The frozen result."""
        return Scan(
            stack=tuple(self._stack),
            unmatched=tuple(self._unmatched),
            inside=self._inside,
            last=self._last,
            head=self._head,
            header_open=self._header_open,
            body_due=self._body_due,
            indent=self._indent,
            unclosed=self._unclosed,
            unmatched_end=self._unmatched_end,
            whole=self._start.whole,
        )


@dataclass(frozen=True, slots=True)
class Literals:
    """The strings and comments of a text that span lines, and the closer of the one that is open at its end."""

    spans: tuple[tuple[int, int], ...]
    inside: bytes

    def hold(self, place: int) -> bool:
        """Whether a place is in one of them."""
        index = bisect_right(self.spans, (place, place)) - 1
        return index >= 0 and self.spans[index][0] < place < self.spans[index][1]


def find_literals(text: bytes, lexicon: Lexicon, inside: bytes = b"") -> Literals:
    """Literals of a text that starts ``inside`` a string; between them the search runs at the speed of ``re``."""
    pattern, closers = _literals(lexicon)
    start = (string_end(text, inside) or len(text)) if inside else 0
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
    """The closer of a comment that a text begins in: it comes before any opener, and is not in a string."""
    for begin, end in lexicon.block_comment:
        place = text.find(end, 0, WINDOW)
        line = text[text.rfind(b"\n", 0, max(place, 0)) + 1 : max(place, 0)]
        if place >= 0 and begin not in text[:place] and not scan(line, lexicon).inside:
            return end
    return b""


def open_quote(text: bytes, lexicon: Lexicon) -> bytes:
    """The quote of a string that a text begins in: its line, or the whole text, has one quote too many."""
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
    """The string that a text between two gaps begins in, given the one that the text before the first gap ended in.

    The gaps may have taken quotes with them: an even number of them in the text says that it begins outside, an odd
    number that one of its ends is inside, and then it is the one that goes on from before.
    """
    if before not in MULTILINE_QUOTES:
        return open_quote(piece.split(b"\n", 1)[0] + b"\n", lexicon)
    quotes = piece.count(before)
    return before if quotes == 0 or quotes % 2 else b""


def scan_left(text: bytes, lexicon: Lexicon, since: int = 0) -> Scan:
    """The state at a gap: a scan from a line in reach that starts a top-level statement and is not inside a string.

    ``since`` is where the gap before this one ended: what that one lacks must not be taken for an open string here.
    """
    piece = text[since:]
    before = find_literals(text[:since], lexicon).inside if since else b""
    found = find_literals(piece, lexicon, carried_quote(piece, before, lexicon) if since else b"")
    literals = Literals(tuple((since + begin, since + end) for begin, end in found.spans), found.inside)
    near = max(len(text) - WINDOW, 0)
    if lexicon.columns:  # columns close every block before the next top-level statement
        begin, far = _last_statement(text, near, literals), None
    else:
        begin = _line_outside(text, near, literals)
        first = _line_outside(text, max(begin - FAR, 0), literals)
        outer = scan_brackets(text[first:begin], lexicon)
        far = Scan(stack=outer.stack, whole=first == 0)
    state = scan(text[begin:], lexicon, far)
    return replace(state, inside=literals.inside)


def _last_statement(text: bytes, near: int, literals: Literals) -> int:
    """Where the last top-level statement starts; in one that is very long, where a line does."""
    starts = [match.end() for match in TOP_LEVEL.finditer(text, near) if not literals.hold(match.end())]
    return starts[-1] if starts else _line_outside(text, near, literals)


def _line_outside(text: bytes, offset: int, literals: Literals) -> int:
    """The first start of a line from an offset on that is not inside a string."""
    if offset == 0:
        return 0
    lines = (match.end() for match in re.finditer(rb"\n", text[offset:]))
    return next((offset + place for place in lines if not literals.hold(offset + place)), len(text))
