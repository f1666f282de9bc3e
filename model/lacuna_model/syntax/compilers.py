"""What reads a file in the end: CPython's compiler, and strict parsers of data languages.

They reject more than a grammar does: a ``return`` outside of a function, a table twice in TOML, two documents in JSON.
No fill is blamed for errors that the document has with neutral text in its gaps, for a laxer dialect, or for syntax
that is newer than this interpreter: that is left to the grammar.
"""

import json
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import product

import yaml

from lacuna_model.core import work
from lacuna_model.languages.language import StrictParser, StrictParsers
from lacuna_model.syntax.faults import Fault
from lacuna_model.text.lines import splice

Gaps = Sequence[tuple[int, int]]
LARGEST = 200_000  # bytes; a larger file takes the compiler more than ten milliseconds, a parser more than 100
COMPILED_NS, PARSED_NS = 270, 400  # of work, for each byte
MOST_COMPILED = 400_000  # bytes, to find out whether the compiler reads a document
# Neutral fills: the first end the gap's line, the second replace it and include headers and clauses.
ENDS = (b"", b"x", b"pass", b"x: pass", b"x:", b":", b" x", b" x:", b"x)", b"x):", b"x]", b"x}", b'"')
LINES = (b"pass", b"if x:", b"try:", b"except:", b"except: pass", b"finally: pass", b"else:", b"case _:", b"x,")
# CPython 3.11 counts the depth of syntax trees for all threads together (github.com/python/cpython/issues/106905), and
# a change of the filter of warnings holds for all threads.
_ONE_AT_A_TIME = threading.Lock()
NEWEST = (3, 14)  # an interpreter from this version on reads all that follows
NEWER = re.compile(
    rb"\btype[ \t]+\w|\b(?:def|class)[ \t]+\w+[ \t]*\[|\bexcept\b[^:\n(]*,|\b(?:[fFtT][rR]?|[rR][fFtT])[\"']"
)
CODE_LINE = re.compile(rb"\n[ \t\f]*[^\s#][^\n]*")
_PLACE = re.compile(r"at line (\d+), column (\d+)")


class Compiler:
    """Asks CPython's compiler for the errors that fills add to a document with gaps (byte ranges of its text)."""

    def __init__(self, text: bytes, gaps: Gaps) -> None:
        self._text, self._gaps = text, gaps
        self._line_of_error = lru_cache(maxsize=4)(line_of_error)  # a fill is checked again at the end

    def faults(self, text: bytes, spans: Gaps) -> frozenset[Fault]:
        """The error of the document with fills (the byte ranges ``spans`` of its ``text``).

        An error counts if it is at a fill, on the next line of code, or on a line where the document has none with
        neutral fills; none does in a document that may be newer than the interpreter.
        """
        line = self._line_of_error(text)
        if line is None or self._may_be_newer:
            return frozenset()
        for start, end in spans:
            if text.count(b"\n", 0, start) < line <= text.count(b"\n", 0, next_code_line(text, end)) + 1:
                return frozenset({Fault("SYNTAX", start, end)})
        before = [span for span in spans if text.count(b"\n", 0, span[0]) < line]
        known = line - sum(text.count(b"\n", *span) for span in before) in self._neutral_lines
        return frozenset() if known else frozenset({Fault("SYNTAX", *(before or spans)[-1])})

    @property
    def _may_be_newer(self) -> bool:
        """Whether the interpreter cannot read the document with any neutral fill, and something in it looks newer."""
        return sys.version_info < NEWEST and NEWER.search(self._text) is not None and bool(self._neutral_lines)

    @cached_property
    def _neutral_lines(self) -> frozenset[int]:
        """The lines of the errors with neutral fills, as far as is tried; none if one of them gives no error.

        Asked once, so the proof that asks first does not pay for it.
        """
        since, lines, size = work.spent(), set[int](), 0
        for filled in _neutral(self._text, self._gaps):
            line, size = line_of_error(filled), size + len(filled)
            if line is None:
                lines.clear()
                break
            lines.add(line)
            if size > MOST_COMPILED:
                break
        work.spend(since - work.spent())
        return frozenset(lines)


def next_code_line(text: bytes, position: int) -> int:
    """The end of the first line after the position's own that is neither blank nor a comment."""
    found = CODE_LINE.search(text, position)
    return len(text) if found is None else found.end()


def _neutral(text: bytes, gaps: Gaps) -> Iterator[bytes]:
    """The text with each neutral fill in its gaps, then with each neutral line in place of the gaps' lines."""
    bounds = [0, *(offset for gap in gaps for offset in gap), len(text)]
    pieces = [text[begin:stop] for begin, stop in zip(bounds[::2], bounds[1::2], strict=True)]
    for end in ENDS:
        yield end.join(pieces)
    bare = [pieces[0], *(piece[max(piece.find(b"\n"), 0) :] for piece in pieces[1:])]
    heads = [piece[: len(piece) - len(piece.rpartition(b"\n")[2].lstrip())] for piece in bare[:-1]]
    for line in LINES:
        yield line.join([*heads, bare[-1]])


def python_compiles(text: bytes) -> bool:
    """Whether CPython compiles a text; one that is too large or too deep to compile counts as valid."""
    return line_of_error(text) is None


def line_of_error(text: bytes) -> int | None:
    """Return the line (from 1) of CPython's error in a text; None in one that is too large or too deep to compile."""
    if len(text) > LARGEST:
        return None
    work.spend(len(text) * COMPILED_NS)
    try:
        compiled(text)
    except (SyntaxError, ValueError) as error:  # the latter for null bytes
        return getattr(error, "lineno", None) or 1
    except (RecursionError, MemoryError):  # nesting beyond the compiler's own limits
        return None
    return None


def compiled(text: bytes) -> None:
    """Compile a text without warnings; raises what :func:`compile` raises."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(text, "<fill>", "exec", dont_inherit=True)


COMPILES: dict[str, Callable[[bytes], bool]] = {"python": python_compiles}


class Strict:
    """Asks the strict parsers of a language for the errors of a document with gaps (byte ranges of its text)."""

    def __init__(self, text: bytes, gaps: Gaps, own: StrictParsers) -> None:
        self._text, self._gaps = text, gaps
        self._parsers, self._neutral, self._soon = own.parsers, own.neutral, own.soon
        self._taken: StrictParser | None = None

    def faults(self, text: bytes, *, soon: bool) -> frozenset[Fault]:
        """Return the parser's error in the filled document; none for the unchanged document.

        With ``soon``, a document above the language's size limit for that is not checked.
        """
        if text == self._text or len(text) > (self._soon if soon else LARGEST):
            return frozenset()
        place = _refusal(self._parsers[0], text)
        if place is None:
            self._taken = self._parsers[0]
            return frozenset()
        parser = self._taken or self._strictest
        if parser is not None and parser is not self._parsers[0]:
            place = _refusal(parser, text)
        return frozenset({Fault("SYNTAX", place, place)}) if parser is not None and place is not None else frozenset()

    @cached_property
    def _strictest(self) -> StrictParser | None:
        """The strictest parser that accepts the document with neutral text in its gaps; None without one."""
        fills = (neutral.encode() for neutral in self._neutral)
        texts = [self._text, *(splice(self._text, [(*gap, fill) for gap in self._gaps]) for fill in fills)]
        for parser, text in product(self._parsers, texts):
            if _refusal(parser, text) is None:
                return parser
        return None


def _refusal(parser: StrictParser, text: bytes) -> int | None:
    """The offset of a parser's error; None if it accepts the text, or cannot decide."""
    work.spend(len(text) * PARSED_NS)
    work.check()
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return error.start
    try:
        parser(decoded)
    except RecursionError:  # nesting beyond the parser's own limits
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return len(text) - len(decoded[mark.index :].encode()) if mark is not None else len(text)
    except json.JSONDecodeError as error:
        return len(text) - len(decoded[error.pos :].encode())
    except (ValueError, yaml.YAMLError) as error:
        return _place(str(error), text)
    return None


def _place(message: str, text: bytes) -> int:
    """The offset that a message names by line and column; the end of the text without one."""
    named = _PLACE.search(message)
    if named is None:
        return len(text)
    lines = text.split(b"\n")
    return sum(len(line) + 1 for line in lines[: int(named[1]) - 1]) + int(named[2]) - 1
