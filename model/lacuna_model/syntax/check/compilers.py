"""CPython's compiler, which knows more of Python than its grammar: where ``return`` may stand, what may be assigned.

It is asked where the tree has no error. Errors that the document has with neutral fills, too, are not the fills'. A
document that is newer than this interpreter is rewritten in older syntax first.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from lacuna_model.core import work
from lacuna_model.syntax.check.error_set import Fault
from lacuna_model.syntax.check.newer_python import without_newer
from lacuna_model.syntax.check.python_compiler import compiled

Gaps = Sequence[tuple[int, int]]
CODE_LINE = re.compile(rb"\n[ \t\f]*[^\s#][^\n]*")
CLAUSE = re.compile(rb"([ \t]*)(try(?=\s*:)|except\b|finally\b)")
LARGEST = 200_000  # bytes; a larger file takes the compiler more than ten milliseconds
BYTE_NS = 270  # of work, to compile
MAX_SECONDS = 0.1  # of work, to find out what the compiler makes of a document
# Neutral fills: the first end the gap's line, the second replace it and include headers and clauses.
ENDS = (b"", b"x", b"pass", b"x: pass", b"x:", b":", b" x", b" x:", b"x)", b"x):", b"x]", b"x}", b'"')
LINES = (b"pass", b"if x:", b"try:", b"except:", b"except: pass", b"finally: pass", b"else:", b"case _:", b"x,")


class Compiler:
    """Finds the errors that fills add to a document with gaps."""

    def __init__(self, text: bytes, gaps: Gaps) -> None:
        self._text, self._gaps = text, gaps

    def faults(self, text: bytes, spans: Gaps, *, at_fills: bool) -> frozenset[Fault]:
        """The error of the document with fills (the byte ranges ``spans`` of its ``text``).

        With ``at_fills`` only an error at a fill or on the next line of code counts, else also one on a line where the
        document has none with neutral fills.
        """
        error = _said(text) if len(text) <= LARGEST else None
        if error is not None and self._neutral.is_newer:
            error = _in_older(text, error)
        if error is None:
            return frozenset()
        line, opened = error.lineno or 1, _open_try(text, error)
        for start, end in spans:
            if text.count(b"\n", 0, start) < (opened or line) <= text.count(b"\n", 0, next_code_line(text, end)) + 1:
                return frozenset({Fault("SYNTAX", start, end)})
        before = [span for span in spans if text.count(b"\n", 0, span[0]) < line]
        lacking = [span for span in before if opened and opened <= text.count(b"\n", 0, span[0])]
        if lacking:  # one of the fills after the "try" lacks its clauses
            return frozenset({Fault("SYNTAX", *lacking[-1])})
        known = at_fills or line - sum(text.count(b"\n", *span) for span in before) in self._neutral.lines
        return frozenset() if known else frozenset({Fault("SYNTAX", *(before or spans)[-1])})

    @cached_property
    def _neutral(self) -> "_Neutral":
        """What CPython says of the document with neutral fills, as far as the budget goes."""
        until, is_newer, lines = work.mark(MAX_SECONDS), False, set[int]()
        for filled in _neutral(self._text, self._gaps) if len(self._text) <= LARGEST else ():
            error = _said(filled)
            if error is None:
                return _Neutral(frozenset(), is_newer=False)
            is_newer = is_newer or _in_older(filled, error) is None
            lines.add(error.lineno or 1)
            if work.reached(until):
                break
        return _Neutral(frozenset() if is_newer else frozenset(lines), is_newer)


class _Neutral(NamedTuple):
    """The lines of the errors that a document has with neutral fills, and whether it has none in older syntax."""

    lines: frozenset[int]
    is_newer: bool


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
    """Whether CPython compiles a text; a text that is too large to compile counts as valid."""
    return len(text) > LARGEST or _said(text) is None


def python_culprit(text: bytes) -> tuple[int, int]:
    """The line where CPython's compiler stops and the line of the cause; zeros without an error.

    A text in newer syntax is compiled in older syntax. A text that is too large to compile has no error.
    """
    error = _said(text) if len(text) <= LARGEST else None
    if error is None or (error := _in_older(text, error)) is None:
        return 0, 0
    stop = error.lineno or 1
    return stop, _open_try(text, error) or stop


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


def next_code_line(text: bytes, position: int) -> int:
    """The end of the first line after the position's own that is neither blank nor a comment."""
    found = CODE_LINE.search(text, position)
    return len(text) if found is None else found.end()


def _in_older(text: bytes, error: SyntaxError) -> SyntaxError | None:
    """CPython's error in a text in older syntax; its ``error`` as it is where that changes nothing."""
    older = _older(text)
    return error if older is None else _said(older)


@work.cached(maxsize=2)
def _older(text: bytes) -> bytes | None:
    return without_newer(text)


@work.cached(maxsize=4)  # a fill is checked again at the end
def _said(text: bytes) -> SyntaxError | None:
    work.spend(len(text) * BYTE_NS)
    try:
        compiled(text, 0)
    except SyntaxError as error:
        return error
    except ValueError as error:  # null bytes
        return SyntaxError(str(error), ("<fill>", text.count(b"\n", 0, max(text.find(b"\0"), 0)) + 1, 0, None))
    except (RecursionError, MemoryError):  # nesting beyond the compiler's own limits; no fill is to blame
        return None
    return None


COMPILES: dict[str, Callable[[bytes], bool]] = {"python": python_compiles}
