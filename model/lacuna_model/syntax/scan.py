"""A lexical scan without a parse: open brackets, open strings and the head of the current line.

It reads unfinished text, where a parser only reports errors. It guesses; the fills built on it are verified.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from lacuna_model.core import work
from lacuna_model.languages.language import Lexicon
from lacuna_model.text.lines import indentation

FAR = 64_000  # bytes in which brackets are counted
TOP_LEVEL = re.compile(rb"\n(?=[^\s)\]}\"'#])(?!(?:end|else|elsif|elif|fi|done|esac|then|do)\b)")
MULTILINE_QUOTES = (b'"""', b"'''", b"`")
UNKNOWN = -1
VISIBLE = frozenset({"word", "mark", "left", "right"})  # tokens that are neither literals nor space
# Lines that begin with these may be indented no deeper than their block.
LABELS = frozenset({b"case", b"default"})
ACCESS = frozenset({b"public:", b"private:", b"protected:"})


# What stands before a command of Bash, on its line.
_BEFORE_COMMANDS = (b"", b";", b"&", b"|", b"!", b"{", b"}", b"(", b")", b"do", b"then", b"else")
# Words of Ruby that open a block as a value, anywhere or behind a mark alone.
_VALUES, _VALUES_BEHIND_MARKS = (b"begin", b"case", b"def"), (b"if", b"unless")
_KEY = re.compile(rb":(?!:)")


class Bracket(NamedTuple):
    """A bracket by its closer, with the column of its line; ``UNKNOWN`` if that is not seen.

    For an opener, ``words`` are the first token of its line and the token before it. For a closer, ``leads`` is true if
    it begins its line, and ``end`` is the offset after it.
    """

    closer: bytes
    column: int = UNKNOWN
    leads: bool = False
    end: int = 0
    words: tuple[bytes, bytes] = (b"", b"")


@dataclass(frozen=True, slots=True)
class Scan:
    """The lexical state at the end of a text.

    ``stack`` holds the open brackets, outermost first, ``unmatched`` the closers without an opener. ``levels`` holds,
    before the first of these closers and after each, the column of the first line in none of the text's own brackets.
    ``inside`` is the closer of an open string or comment. ``last`` is the last token that is no
    space (empty at the start of a line), ``head`` the first word of the line outside parentheses. ``body_due`` is the
    indentation of a header whose block has not begun, ``indent`` that of the line. ``unclosed`` is true if a line ended
    in a string. ``column`` is the column of the current
    line, ``fresh`` is true while it is blank.
    """

    stack: tuple[Bracket, ...] = ()
    unmatched: tuple[Bracket, ...] = ()
    levels: tuple[int, ...] = (UNKNOWN,)
    inside: bytes = b""
    last: bytes = b""
    head: bytes = b""
    header_open: bool = False
    body_due: bytes | None = None
    indent: bytes = b""
    unclosed: bool = False
    column: int = 0
    fresh: bool = False

    @property
    def closers(self) -> tuple[bytes, ...]:
        """The closers of the open brackets, outermost first."""
        return tuple(bracket.closer for bracket in self.stack)


def shared(one: Sequence[Bracket], other: Sequence[Bracket]) -> int:
    """The number of brackets that two stacks have in common, from the outermost on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, its) in pairs if mine.closer != its.closer), min(len(one), len(other)))


@lru_cache(maxsize=32)
def literal_pattern(lexicon: Lexicon) -> tuple[re.Pattern[bytes], tuple[bytes, ...]]:
    """Return the pattern of comments and strings, and the closer of each ``open<i>`` group in it."""
    closers: list[bytes] = []
    parts: list[bytes] = []
    for begin, end in lexicon.block_comment:
        parts.append(b"(?P<skip%d>%s.*?%s)" % (len(parts), re.escape(begin), re.escape(end)))
        parts.append(b"(?P<open%d>%s.*)" % (len(closers), re.escape(begin)))
        closers.append(end)
    for mark in lexicon.line_comment:
        parts.append(b"(?P<note%d>%s[^\\n]*)" % (len(parts), re.escape(mark)))
    for begin, end in lexicon.raw:
        parts.append(b"(?P<atom%d>%s.*?%s)" % (len(parts), re.escape(begin), re.escape(end)))
        parts.append(b"(?P<open%d>%s.*)" % (len(closers), re.escape(begin)))
        closers.append(end)
    parts += [b"(?P<atom%d>%s)" % (len(parts) + place, atom) for place, atom in enumerate(lexicon.atoms)]
    long, short = rb"(?:\\.|(?!%s)[^\\]|\\\Z)*", rb"(?:\\.|(?!%s)[^\\\n]|\\\Z)*"
    for quote in lexicon.quotes:
        # a backslash matches in one way only: with two, a string without an end takes exponential time
        plain = long if quote in MULTILINE_QUOTES or lexicon.long_strings else short
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
        literal_pattern(lexicon)[0].pattern,
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
    """The pattern of literals and brackets only, so that ``re`` skips the text between them."""
    return re.compile(literal_pattern(lexicon)[0].pattern + b"|[%s]" % re.escape(b"".join(lexicon.brackets)), re.DOTALL)


def scan_brackets(text: bytes, lexicon: Lexicon) -> Scan:
    """Return the brackets that are open after a text, and its closers without an opener, and nothing else."""
    pairs = {pair[:1]: pair[1:] for pair in lexicon.brackets}
    stack: list[Bracket] = []
    unmatched: list[Bracket] = []
    line, column = UNKNOWN, 0
    for match in work.checked(_bracket_pattern(lexicon).finditer(text)):
        if match.lastgroup is not None:
            continue
        mark, place = match.group(), match.start()
        start = text.rfind(b"\n", 0, place) + 1
        if start != line:
            line, column = start, column_of(text[start:place])
        if mark in pairs:
            stack.append(Bracket(pairs[mark], column))
        elif stack and stack[-1].closer == mark:
            column = min(column, stack.pop().column)
        else:
            unmatched.append(Bracket(mark, column, leads=not text[start:place].strip(), end=match.end()))
    return Scan(stack=tuple(stack), unmatched=tuple(unmatched))


def column_of(lead: bytes) -> int:
    """The column of a line's first character, given at least its leading white space."""
    return len(indentation(lead, b" \t").expandtabs())


def scan(text: bytes, lexicon: Lexicon, before: Scan | None = None) -> Scan:
    """Return the state at the end of a text that follows the text of ``before``."""
    state = before or Scan()
    if state.inside:
        end = left_at(text, state.inside)
        if end is None:
            return state
        last = state.last if state.inside == b"\n" else b'"'
        text, state = text[end:], replace(state, inside=b"", last=last)
    closers = literal_pattern(lexicon)[1]
    walk = _Walk(state, lexicon)
    for match in work.checked(_pattern(lexicon).finditer(text)):
        walk.token(match, closers)
    return walk.state()


def left_at(text: bytes, inside: bytes) -> int | None:
    """The offset at which a text leaves the string or comment that it begins ``inside``; None if it does not."""
    if inside != b"\n":
        return string_end(text, inside)
    return end if (end := text.find(b"\n")) >= 0 else None


def string_end(text: bytes, closer: bytes) -> int | None:
    """The offset after the closer of a string that a text begins in; None if it does not end."""
    for match in re.finditer(rb"\\.|" + re.escape(closer) + (b"" if closer in MULTILINE_QUOTES else b"|\n"), text):
        if match.group() == closer:
            return match.end()
        if match.group() == b"\n" and len(closer) == 1:
            return match.start()
    return None


class _Walk:
    """The running state of a scan; one method per kind of token."""

    def __init__(self, state: Scan, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._pairs = {pair[:1]: pair[1:] for pair in lexicon.brackets}
        self._opening_words = {opener: closer for opener, closer, _ in lexicon.blocks}
        self._closing_words = frozenset(self._opening_words.values())
        self._is_bash = b"fi" in self._closing_words
        self._stack = list(state.stack)
        self._unmatched = list(state.unmatched)
        self._levels = list(state.levels)
        self._column = state.column
        self._fresh = state.fresh  # whether the line is blank so far and its column is known
        self._inside = state.inside
        self._last = state.last
        self._head = state.head
        self._header_open = state.header_open
        self._body_due = state.body_due
        self._indent = state.indent
        self._line_start = not state.last
        self._unclosed = state.unclosed

    def token(self, match: re.Match[bytes], closers: Sequence[bytes]) -> None:
        """Process one token of the pattern."""
        kind = match.lastgroup or ""
        if kind in VISIBLE:
            self._visible(kind, match)
        elif kind == "newline":
            self._newline()
        elif kind == "blank":
            if self._line_start:
                self._indent = match.group()
            if self._fresh:
                self._column = column_of(match.group())
        elif kind.startswith("torn"):
            self._unclosed = True
            self._visible("atom", match)
        elif kind.startswith("open"):
            self._inside = closers[int(kind[4:])]
        elif kind.startswith("note") and match.end() == len(match.string):
            self._inside = b"\n"
        elif not kind.startswith(("skip", "note")):
            self._visible(kind, match)

    def _newline(self) -> None:
        self._column, self._fresh = 0, True
        if self._in(b")", b"]"):
            return
        if self._last == b":" and self._head in self._lexicon.headers:
            self._body_due = self._indent
        self._last, self._head, self._header_open = b"", b"", False
        self._line_start, self._indent = True, b""

    def _visible(self, kind: str, match: re.Match[bytes]) -> None:
        text, end = match.group(), match.end()
        if not self._head:
            self._head = text
            self._header_open = text in self._lexicon.headers
            self._body_due = None
        self._line_start = False
        closes = kind == "right" or self._ends_block(match)
        if self._fresh and not closes and text != b"#":
            label = text in LABELS or text + match.string[end : end + 1] in ACCESS
            self._level(self._column + label)
        if closes:
            self._close(text, end)
        elif kind == "word":
            self._block_word(match)
        elif kind == "left":
            self._stack.append(Bracket(self._pairs[text], self._column, words=(self._head, self._last)))
        elif text == b":" and not self._in(b")", b"]", b"}"):
            self._header_open = False
        self._last, self._fresh = text, False

    def _in(self, *closers: bytes) -> bool:
        """Whether the innermost open bracket is one of these."""
        return bool(self._stack) and self._stack[-1].closer in closers

    def _level(self, column: int) -> None:
        """Record the column of a line's first token."""
        if not self._stack and self._levels[-1] == UNKNOWN:
            self._levels[-1] = column

    def _close(self, text: bytes, end: int) -> None:
        if self._in(text):
            opener = self._stack.pop()  # the rest of this line belongs to the statement that began there
            self._column = min(self._column, opener.column) if opener.column != UNKNOWN else self._column
        else:
            self._unmatched.append(Bracket(text, self._column, leads=self._fresh, end=end))
            self._levels.append(UNKNOWN)
            if text == b")":  # the start of the statement is not seen
                self._column = UNKNOWN

    def _block_word(self, match: re.Match[bytes]) -> None:
        """Treat a block of words as a bracket; after another word in its line the word may be a mere modifier."""
        word = match.group()
        if word in self._opening_words and (self._head == word or self._opens_anywhere(match)):
            self._stack.append(Bracket(self._opening_words[word], self._column))

    def _ends_block(self, match: re.Match[bytes]) -> bool:
        """Whether a word closes a block: in Bash where a command begins, in Ruby where it is no name."""
        if match.group() not in self._closing_words:
            return False
        return self._last in _BEFORE_COMMANDS if self._is_bash else not self._is_name(match)

    def _opens_anywhere(self, match: re.Match[bytes]) -> bool:
        """Whether a word opens a block behind others of its line."""
        word, openers = match.group(), self._opening_words
        if word == b"function":
            return True
        if word == b"do":  # in Ruby the word at the head of a loop already opened its block
            return b"while" not in openers or self._head not in openers
        if self._is_bash:
            return self._last in _BEFORE_COMMANDS
        if b"function" in openers:  # Lua
            return word == b"if"
        is_value = word in _VALUES or (word in _VALUES_BEHIND_MARKS and self._last in (b"=", b"(", b"[", b","))
        return is_value and not self._is_name(match)

    def _is_name(self, match: re.Match[bytes]) -> bool:
        """Whether a word of Ruby is a method, a symbol or a key: ``a.end``, ``:end``, ``end:``."""
        return self._last in (b".", b":") or _KEY.match(match.string, match.end()) is not None

    def state(self) -> Scan:
        """The frozen result."""
        return Scan(
            stack=tuple(self._stack),
            unmatched=tuple(self._unmatched),
            levels=tuple(self._levels),
            inside=self._inside,
            last=self._last,
            head=self._head,
            header_open=self._header_open,
            body_due=self._body_due,
            indent=self._indent,
            unclosed=self._unclosed,
            column=self._column,
            fresh=self._fresh,
        )
