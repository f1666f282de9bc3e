"""A lexical scan without a parse: open brackets, strings and blocks that are columns, the head of the current line.

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
REACH = 4000  # bytes in which the lines of open blocks are looked for
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


@dataclass(slots=True)
class Scan:
    """The lexical state at the end of a text.

    ``stack`` holds the open brackets, outermost first, ``unmatched`` the closers without an opener. ``levels`` holds,
    before the first of these closers and after each, the column of the first line in none of the text's own brackets.
    ``inside`` is the closer of an open string or comment. ``last`` is the last token that is no space (empty at the
    start of a line), ``head`` the first word of the line outside parentheses. ``body_due`` is the indentation of a
    header whose block has not begun, ``indent`` that of the line. ``unclosed`` is true if a line ended in a string.
    ``column`` is the column of the current line, ``fresh`` is true while it is blank. Nothing changes a scan
    once it is returned.
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
    """A scan under way: its state ``at`` the end of what was read, whose brackets and levels are lists here."""

    def __init__(self, state: Scan, lexicon: Lexicon) -> None:
        self._lexicon, self._at = lexicon, replace(state)
        self._stack, self._unmatched, self._levels = list(state.stack), list(state.unmatched), list(state.levels)
        self._is_line_start = not state.last
        self._pairs = {pair[:1]: pair[1:] for pair in lexicon.brackets}
        self._opening_words = {opener: closer for opener, closer, _ in lexicon.blocks}
        self._closing_words = frozenset(self._opening_words.values())
        self._is_bash = b"fi" in self._closing_words

    def state(self) -> Scan:
        """The result."""
        brackets, unmatched = tuple(self._stack), tuple(self._unmatched)
        return replace(self._at, stack=brackets, unmatched=unmatched, levels=tuple(self._levels))

    def token(self, match: re.Match[bytes], closers: Sequence[bytes]) -> None:
        """Process one token of the pattern."""
        kind, at = match.lastgroup or "", self._at
        if kind in VISIBLE or kind.startswith(("atom", "torn")):
            at.unclosed = at.unclosed or kind.startswith("torn")
            self._visible(kind, match)
        elif kind == "newline":
            self._newline()
        elif kind == "blank":
            at.indent = match.group() if self._is_line_start else at.indent
            at.column = column_of(match.group()) if at.fresh else at.column
        elif kind.startswith("open"):
            at.inside = closers[int(kind[4:])]
        elif kind.startswith("note") and match.end() == len(match.string):
            at.inside = b"\n"

    def _newline(self) -> None:
        at = self._at
        at.column, at.fresh = 0, True
        if self._in(b")", b"]"):
            return
        if at.last == b":" and at.head in self._lexicon.headers:
            at.body_due = at.indent
        at.last, at.head, at.header_open, at.indent = b"", b"", False, b""
        self._is_line_start = True

    def _visible(self, kind: str, match: re.Match[bytes]) -> None:
        text, end, at = match.group(), match.end(), self._at
        if not at.head:
            at.head, at.header_open, at.body_due = text, text in self._lexicon.headers, None
        self._is_line_start = False
        closes = kind == "right" or self._ends_block(match)
        if at.fresh and not closes and text != b"#" and not self._stack and self._levels[-1] == UNKNOWN:
            is_label = text in LABELS or text + match.string[end : end + 1] in ACCESS
            self._levels[-1] = at.column + is_label
        if closes:
            self._close(text, end)
        elif kind == "word" and text in self._opening_words and (at.head == text or self._opens_anywhere(match)):
            self._stack.append(Bracket(self._opening_words[text], at.column))
        elif kind == "left":
            self._stack.append(Bracket(self._pairs[text], at.column, words=(at.head, at.last)))
        elif text == b":" and not self._in(b")", b"]", b"}"):
            at.header_open = False
        at.last, at.fresh = text, False

    def _in(self, *closers: bytes) -> bool:
        """Whether the innermost open bracket is one of these."""
        return bool(self._stack) and self._stack[-1].closer in closers

    def _close(self, text: bytes, end: int) -> None:
        at = self._at
        if self._in(text):
            opener = self._stack.pop()  # the rest of this line belongs to the statement that began there
            at.column = min(at.column, opener.column) if opener.column != UNKNOWN else at.column
            return
        self._unmatched.append(Bracket(text, at.column, leads=at.fresh, end=end))
        self._levels.append(UNKNOWN)
        if text == b")":  # the start of the statement is not seen
            at.column = UNKNOWN

    def _ends_block(self, match: re.Match[bytes]) -> bool:
        """Whether a word closes a block: in Bash where a command begins, in Ruby where it is no name."""
        if match.group() not in self._closing_words:
            return False
        return self._at.last in _BEFORE_COMMANDS if self._is_bash else not self._is_name(match)

    def _opens_anywhere(self, match: re.Match[bytes]) -> bool:
        """Whether a word opens a block, as a bracket does, behind others of its line: it may be a mere modifier."""
        word, last, openers = match.group(), self._at.last, self._opening_words
        if word == b"function":
            return True
        if word == b"do":  # in Ruby the word at the head of a loop already opened its block
            return b"while" not in openers or self._at.head not in openers
        if self._is_bash:
            return last in _BEFORE_COMMANDS
        if b"function" in openers:  # Lua
            return word == b"if"
        is_value = word in _VALUES or (word in _VALUES_BEHIND_MARKS and last in (b"=", b"(", b"[", b","))
        return is_value and not self._is_name(match)

    def _is_name(self, match: re.Match[bytes]) -> bool:
        """Whether a word of Ruby is a method, a symbol or a key: ``a.end``, ``:end``, ``end:``."""
        return self._at.last in (b".", b":") or _KEY.match(match.string, match.end()) is not None


class StatementLine(NamedTuple):
    """The indentation of a statement's line, in characters, and the word that it begins with."""

    column: int
    word: bytes


def open_lines(text: bytes, unit: int) -> list[StatementLine]:
    """The lines whose blocks are open at the end of a text, outermost first; the last is the current line.

    An empty current line gets the column of the line before it, deeper by ``unit`` after a header.
    """
    lines = text[-REACH:].split(b"\n")
    found = [_line(lines[-1])]
    for raw in reversed(lines[:-1]):
        line = _line(raw)
        if not line.word:
            continue
        if not found[0].word:
            deeper = unit if raw.rstrip().endswith(b":") else 0
            found = [StatementLine(line.column + deeper, b"x")]
        if line.column < found[-1].column:
            found.append(line)
        if found[-1].column == 0:
            break
    return found[::-1]


def coming_lines(text: bytes) -> list[StatementLine]:
    """The lines after the first that are each indented less than all before, innermost first."""
    found: list[StatementLine] = []
    for raw in text[:REACH].split(b"\n")[1:]:
        line = _line(raw)
        if line.word and (not found or line.column < found[-1].column):
            found.append(line)
            if line.column == 0:
                break
    return found


def _line(raw: bytes) -> StatementLine:
    blank = re.match(rb"[ \t\f]*", raw)
    assert blank is not None
    word = re.match(rb"[^\W\d]\w*|[^\s#)\]}]", raw[blank.end() :])
    return StatementLine(blank.end(), word.group() if word else b"")
