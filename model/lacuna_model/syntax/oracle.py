"""Strict oracles: what the language itself says of a text, where asking costs a fraction of a millisecond.

Only CPython's own parser is that close. It speaks up for errors at the fills: what else it dislikes was there before,
unless it has no objection to the document without the fills' statements. Syntax that is newer than it is none of its
business; and where it stops whatever is in the gaps, it is believed up to there.
"""

import ast
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from lacuna_model.syntax.error_set import Fault
from lacuna_model.syntax.newer_python import without_newer

CODE_LINE = re.compile(rb"\n[ \t\f]*[^\s#][^\n]*")
CLAUSE = re.compile(rb"([ \t]*)(try(?=\s*:)|except\b|finally\b)")
LARGEST = 200_000  # bytes; a larger file takes the compiler more than some ten milliseconds
MOST_SECONDS = 0.1  # of this thread, to try what is neutral
# What may stand in a gap: to end its line with, or in place of the line, where it may be a header or a clause too.
ENDS = (b"", b"x", b"pass", b"x: pass", b"x:", b":", b" x", b" x:", b"x)", b"x):", b"x]", b"x}", b'"')
LINES = (b"pass", b"if x:", b"try:", b"except:", b"except: pass", b"finally: pass", b"else:", b"case _:", b"x,")


class Neutral:
    """A text, in the ``pieces`` around its gaps, as its compiler would have it without any fill's doing."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._stops: dict[int, int | None] = {}

    def stop(self, flags: int) -> int | None:
        """The line that the compiler comes to and no further, whatever is in the gaps; None where it takes the text."""
        if flags not in self._stops:
            self._stops[flags] = self._furthest(flags)
        return self._stops[flags]

    def _furthest(self, flags: int) -> int | None:
        until, furthest = time.thread_time() + MOST_SECONDS, 1
        for text in self._texts():
            error = _refusal(text, flags)
            if error is None:
                return None
            furthest = max(furthest, error.lineno or 1)
            if time.thread_time() > until:
                break
        return furthest

    def _texts(self) -> Iterator[bytes]:
        for end in ENDS:
            yield end.join(self._pieces)
        bare = [self._pieces[0], *(piece[max(piece.find(b"\n"), 0) :] for piece in self._pieces[1:])]
        heads = [piece[: len(piece) - len(piece.rpartition(b"\n")[2].lstrip())] for piece in bare[:-1]]
        for line in LINES:
            yield line.join([*heads, bare[-1]])


Oracle = Callable[[bytes, Sequence[tuple[int, int]], Neutral | None], Fault | None]


def python_syntax(text: bytes, spans: Sequence[tuple[int, int]], neutral: Neutral | None = None) -> Fault | None:
    """What CPython's parser finds at the fills (byte ranges ``spans``) or on the line behind them.

    Where a file may be broken around its gaps, that is what it does not find with something ``neutral`` in them.
    """
    return _at_fills(text, spans, ast.PyCF_ONLY_AST, neutral)


def python_program(text: bytes, spans: Sequence[tuple[int, int]], neutral: Neutral | None = None) -> Fault | None:
    """The same of CPython's compiler, which also knows where ``return`` or ``await`` may stand."""
    if len(text) > LARGEST or _refusal(text, 0) is None:
        return None
    unread = _refusal(text, ast.PyCF_ONLY_AST) is not None
    return _at_fills(text, spans, ast.PyCF_ONLY_AST if unread else 0, neutral)


def python_compiles(text: bytes) -> bool:
    """Whether CPython compiles a text; one too large to ask about counts as compiled."""
    return python_line(text) == 0


def python_line(text: bytes) -> int:
    """The line that CPython's compiler has something against; 0 for none, or for a text too large to ask about."""
    error = _refusal(text, 0) if len(text) <= LARGEST else None
    return (error.lineno or 1) if error is not None else 0


def _at_fills(text: bytes, spans: Sequence[tuple[int, int]], flags: int, neutral: Neutral | None) -> Fault | None:
    error = _refusal(text, flags)
    if error is None:
        return None
    stop = neutral.stop(flags) if neutral is not None else None
    found, opened = error.lineno or 1, _open_try(text, error)
    for start, end in spans:
        last = text.count(b"\n", 0, end if stop else next_code_line(text, end)) + 1
        if text.count(b"\n", 0, start) < ((stop is None and opened) or found) <= last:
            return Fault("SYNTAX", start, end) if stop is None or _own_line(found, text, spans) < stop else None
    # the clauses that a "try" lacks are missing in one of the fills behind it
    behind = [span for span in spans if stop is None and opened and opened <= text.count(b"\n", 0, span[0]) < found]
    return Fault("SYNTAX", *behind[-1]) if behind else None


def _own_line(line: int, text: bytes, spans: Sequence[tuple[int, int]]) -> int:
    """The number that a line has where no fill has a line's end."""
    ends = [at for start, end in spans for at in range(start, end) if text.startswith(b"\n", at)]
    return line - sum(text.count(b"\n", 0, at) + 1 < line for at in ends)


def _open_try(text: bytes, error: SyntaxError) -> int:
    """The line of the ``try`` whose clauses the parser misses, which it only does behind the block; 0 for any other."""
    if "expected 'except'" not in error.msg:
        return 0
    followed: set[bytes] = set()
    lines = text.split(b"\n")[: error.lineno]
    for number in range(len(lines), 0, -1):
        if (match := CLAUSE.match(lines[number - 1])) is None:
            continue
        indent, word = match.groups()
        if word != b"try":
            followed.add(indent)
        elif indent in followed:
            followed.remove(indent)
        else:
            return number
    return 0


def next_code_line(text: bytes, position: int) -> int:
    """The end of the first line behind a position's own that is neither blank nor a comment."""
    found = CODE_LINE.search(text, position)
    return len(text) if found is None else found.end()


@lru_cache(maxsize=4)  # a text that does not compile is asked about again, for where
def _refusal(text: bytes, flags: int) -> SyntaxError | None:
    """What CPython has against a text, but for syntax that is newer than it."""
    error = _said(text, flags)
    older = without_newer(text) if error is not None else None
    return error if older is None else _said(older, flags)


def _said(text: bytes, flags: int) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<fill>", "exec", flags=flags, dont_inherit=True)
    except SyntaxError as error:
        return error
    except ValueError as error:  # null bytes
        return SyntaxError(str(error), ("<fill>", text.count(b"\n", 0, max(text.find(b"\0"), 0)) + 1, 0, None))
    except (RecursionError, MemoryError):  # nesting beyond the compiler's own limits, which no fill is to blame for
        return None
    return None


SYNTAX: dict[str, Oracle] = {"python": python_syntax}
PROGRAM: dict[str, Oracle] = {"python": python_program}
COMPILES: dict[str, Callable[[bytes], bool]] = {"python": python_compiles}
LINE: dict[str, Callable[[bytes], int]] = {"python": python_line}
