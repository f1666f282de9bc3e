"""Asks a language's own compiler for errors, where that takes a fraction of a millisecond.

Only CPython's parser is available in the process. It counts only errors at the fills: other errors, for example a newer
version's syntax, were there before, unless it accepts the document without the fills' statements. A document that is
newer than this interpreter is rewritten in older syntax first.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

from lacuna_model.core import work
from lacuna_model.syntax.check.error_set import Fault
from lacuna_model.syntax.check.newer_python import without_newer
from lacuna_model.syntax.check.python_compiler import compiled

Newness = Callable[[], bool]  # whether a document is newer than its compiler; the first call is slow
Gaps = Sequence[tuple[int, int]]


def never_newer() -> bool:
    """Whether a document is newer than its compiler: never."""
    return False


def _always() -> bool:
    return True


Oracle = Callable[[bytes, Gaps, Newness], Fault | None]
CODE_LINE = re.compile(rb"\n[ \t\f]*[^\s#][^\n]*")
SCOPE = re.compile(rb"[ \t]*(?:async +)?(?:def|class|for|while)\b")
CLAUSE = re.compile(rb"([ \t]*)(try(?=\s*:)|except\b|finally\b)")
LARGEST = 200_000  # bytes; a larger file takes the compiler more than ten milliseconds
BYTE_NS = 270  # of work, to compile
MAX_SECONDS = 0.1  # of work, to find out whether a document is newer
# Neutral fills: the first end the gap's line, the second replace it and include headers and clauses.
ENDS = (b"", b"x", b"pass", b"x: pass", b"x:", b":", b" x", b" x:", b"x)", b"x):", b"x]", b"x}", b'"')
LINES = (b"pass", b"if x:", b"try:", b"except:", b"except: pass", b"finally: pass", b"else:", b"case _:", b"x,")


def newness(text: bytes, gaps: Gaps, language: str) -> Newness:
    """Return a function that tells whether a document with gaps is newer than its language's compiler.

    The function finds this out when it is first called, and caches the answer.
    """
    if language not in PROGRAM:
        return never_newer
    return cache(partial(_is_newer_python, text, tuple(gaps)))


def _is_newer_python(text: bytes, gaps: Gaps) -> bool:
    """Whether CPython accepts a document with neutral fills only in older syntax; False if the budget ends first."""
    until, is_newer = work.mark(MAX_SECONDS), False
    for filled in _neutral(text, gaps) if len(text) <= LARGEST else ():
        if work.reached(until) or _said(filled, 0) is None:
            return False
        older = without_newer(filled)
        is_newer = is_newer or (older is not None and _said(older, 0) is None)
    return is_newer


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


def python_syntax(text: bytes, spans: Gaps, is_newer: Newness = never_newer) -> Fault | None:
    """Return CPython's parse error at the fills (byte ranges ``spans``) or on the next line of code after one."""
    return _at_fills(text, spans, ast.PyCF_ONLY_AST, is_newer)


def python_program(text: bytes, spans: Gaps, is_newer: Newness = never_newer) -> Fault | None:
    """The same for CPython's compiler, which also checks where ``return`` or ``await`` may stand."""
    return _at_fills(text, spans, 0, is_newer) if len(text) <= LARGEST else None


def python_compiles(text: bytes, is_newer: Newness = never_newer) -> bool:
    """Whether CPython compiles a text; a text that is too large to compile counts as valid."""
    return python_line(text, is_newer) == 0


def python_line(text: bytes, is_newer: Newness = never_newer) -> int:
    """The line of CPython's compile error; 0 without one, or for a text that is too large to compile."""
    error = _refusal(text, 0, is_newer) if len(text) <= LARGEST else None
    return (error.lineno or 1) if error is not None else 0


def python_culprit(text: bytes) -> tuple[int, int]:
    """The line where CPython's compiler stops and the line of the cause; zeros without an error.

    A text in newer syntax is compiled in older syntax. A text that is too large to compile has no error.
    """
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
    # one of the fills after the "try" lacks its clauses
    after = [span for span in spans if opened and opened <= text.count(b"\n", 0, span[0]) < found]
    return Fault("SYNTAX", *after[-1]) if after else None


def _open_try(text: bytes, error: SyntaxError) -> int:
    """The line of the ``try`` whose missing clauses are reported only after its block; 0 for any other error."""
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


def is_header(fill: bytes) -> bool:
    """Whether a fill ends with the header of the block after it, which may be the wrong kind of block."""
    return fill.rstrip().endswith(b":")


def scopes(lines: bytes, column: int) -> bytes:
    """The lines that decide whether a following block of this column is in a function or in a loop.

    They are the headers, and placeholders for the other lines, that are indented less than ``column``.
    """
    found = []
    for line in lines.split(b"\n"):
        lead, head = line[: len(line) - len(line.lstrip())], SCOPE.match(line)
        if lead != line and len(lead) < column:
            found.append(head.group() if head else lead + b"x")
    return b"\n".join(found)


def next_code_line(text: bytes, position: int) -> int:
    """The end of the first line after the position's own that is neither blank nor a comment."""
    found = CODE_LINE.search(text, position)
    return len(text) if found is None else found.end()


def _refusal(text: bytes, flags: int, is_newer: Newness) -> SyntaxError | None:
    """CPython's error in a text; if the document is newer than CPython, the error in older syntax."""
    error = _said(text, flags)
    older = _older(text) if error is not None and is_newer() else None
    return error if older is None else _said(older, flags)


@work.cached(maxsize=2)
def _older(text: bytes) -> bytes | None:
    return without_newer(text)


@work.cached(maxsize=4)  # a text that does not compile is compiled again to find the place
def _said(text: bytes, flags: int) -> SyntaxError | None:
    work.spend(len(text) * BYTE_NS)
    try:
        compiled(text, flags)
    except SyntaxError as error:
        return error
    except ValueError as error:  # null bytes
        return SyntaxError(str(error), ("<fill>", text.count(b"\n", 0, max(text.find(b"\0"), 0)) + 1, 0, None))
    except (RecursionError, MemoryError):  # nesting beyond the compiler's own limits; no fill is to blame
        return None
    return None


SYNTAX: dict[str, Oracle] = {"python": python_syntax}
PROGRAM: dict[str, Oracle] = {"python": python_program}
COMPILES = {"python": python_compiles}
LINE: dict[str, Callable[[bytes, Newness], int]] = {"python": python_line}
