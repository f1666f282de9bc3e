"""Strict oracles: what the language itself says of a text, where asking costs a fraction of a millisecond.

Only CPython's own parser is that close. It speaks up for errors at the fills: what else it dislikes (another
version's syntax, say) was there before, unless it has no objection to the document without the fills' statements.
Where a document is newer than this interpreter, it is asked about the same in older syntax.
"""

import ast
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial

from lacuna_model.syntax.check.error_set import Fault
from lacuna_model.syntax.check.newer_python import without_newer

Newness = Callable[[], bool]  # whether a document is newer than its compiler, which takes a while to find out
Gaps = Sequence[tuple[int, int]]


def never_newer() -> bool:
    """A document of the compiler's own version, or an older one."""
    return False


def _always() -> bool:
    return True


Oracle = Callable[[bytes, Gaps, Newness], Fault | None]
CODE_LINE = re.compile(rb"\n[ \t\f]*[^\s#][^\n]*")
CLAUSE = re.compile(rb"([ \t]*)(try(?=\s*:)|except\b|finally\b)")
LARGEST = 200_000  # bytes; a larger file takes the compiler more than some ten milliseconds
MOST_SECONDS = 0.1  # of this thread, to find a text that tells of a document's version
# What may stand in a gap: to end its line with, or in place of the line, where it may be a header or a clause too.
ENDS = (b"", b"x", b"pass", b"x: pass", b"x:", b":", b" x", b" x:", b"x)", b"x):", b"x]", b"x}", b'"')
LINES = (b"pass", b"if x:", b"try:", b"except:", b"except: pass", b"finally: pass", b"else:", b"case _:", b"x,")


def newness(text: bytes, gaps: Gaps, language: str) -> Newness:
    """Whether a document with gaps is newer than its language's compiler; found out once, when it is first asked."""
    if language not in PROGRAM:
        return never_newer
    return cache(partial(_is_newer_python, text, tuple(gaps)))


def _is_newer_python(text: bytes, gaps: Gaps) -> bool:
    """Whether CPython takes a document in older syntax alone, with something neutral in its gaps."""
    until, is_newer = time.thread_time() + MOST_SECONDS, False
    for filled in _neutral(text, gaps) if len(text) <= LARGEST else ():
        if time.thread_time() > until or _said(filled, 0) is None:
            return False
        older = without_newer(filled)
        is_newer = is_newer or (older is not None and _said(older, 0) is None)
    return is_newer


def _neutral(text: bytes, gaps: Gaps) -> Iterator[bytes]:
    """A text with what any of its fills may be."""
    bounds = [0, *(offset for gap in gaps for offset in gap), len(text)]
    pieces = [text[begin:stop] for begin, stop in zip(bounds[::2], bounds[1::2], strict=True)]
    for end in ENDS:
        yield end.join(pieces)
    bare = [pieces[0], *(piece[max(piece.find(b"\n"), 0) :] for piece in pieces[1:])]
    heads = [piece[: len(piece) - len(piece.rpartition(b"\n")[2].lstrip())] for piece in bare[:-1]]
    for line in LINES:
        yield line.join([*heads, bare[-1]])


def python_syntax(text: bytes, spans: Gaps, is_newer: Newness = never_newer) -> Fault | None:
    """What CPython's parser finds at the fills (byte ranges ``spans``) or on the line behind them."""
    return _at_fills(text, spans, ast.PyCF_ONLY_AST, is_newer)


def python_program(text: bytes, spans: Gaps, is_newer: Newness = never_newer) -> Fault | None:
    """The same of CPython's compiler, which also knows where ``return`` or ``await`` may stand."""
    return _at_fills(text, spans, 0, is_newer) if len(text) <= LARGEST else None


def python_compiles(text: bytes, is_newer: Newness = never_newer) -> bool:
    """Whether CPython compiles a text; one too large to ask about counts as compiled."""
    return python_line(text, is_newer) == 0


def python_line(text: bytes, is_newer: Newness = never_newer) -> int:
    """The line that CPython's compiler has something against; 0 for none, or for a text too large to ask about."""
    error = _refusal(text, 0, is_newer) if len(text) <= LARGEST else None
    return (error.lineno or 1) if error is not None else 0


def python_culprit(text: bytes) -> tuple[int, int]:
    """The line where CPython's compiler stops, and that of the cause; zeros as above. The text may be newer."""
    error = _refusal(text, 0, _always) if len(text) <= LARGEST else None
    stop = (error.lineno or 1) if error is not None else 0
    return stop, (_open_try(text, error) if error is not None else 0) or stop


def _at_fills(text: bytes, spans: Gaps, flags: int, is_newer: Newness) -> Fault | None:
    error = _refusal(text, flags, is_newer)
    if error is None:
        return None
    found, opened = error.lineno or 1, _open_try(text, error)
    for start, end in spans:
        if text.count(b"\n", 0, start) < (opened or found) <= text.count(b"\n", 0, next_code_line(text, end)) + 1:
            return Fault("SYNTAX", start, end)
    # the clauses that a "try" lacks are missing in one of the fills behind it
    after = [span for span in spans if opened and opened <= text.count(b"\n", 0, span[0]) < found]
    return Fault("SYNTAX", *after[-1]) if after else None


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


def _refusal(text: bytes, flags: int, is_newer: Newness) -> SyntaxError | None:
    """What CPython has against a text, but for syntax that is newer than it where that is the document's own."""
    error = _said(text, flags)
    older = _older(text) if error is not None and is_newer() else None
    return error if older is None else _said(older, flags)


@lru_cache(maxsize=2)
def _older(text: bytes) -> bytes | None:
    return without_newer(text)


@lru_cache(maxsize=4)  # a text that does not compile is asked about again, for where
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
COMPILES = {"python": python_compiles}
LINE: dict[str, Callable[[bytes, Newness], int]] = {"python": python_line}
CULPRIT: dict[str, Callable[[bytes], tuple[int, int]]] = {"python": python_culprit}
