"""Strict oracles: what the language itself says of a text, where asking costs a fraction of a millisecond.

Only CPython's own parser is that close. It speaks up for errors at the fills: what else it dislikes (another
version's syntax, say) was there before, unless it has no objection to the document without the fills' statements.
"""

import ast
import re
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache

from lacuna_model.syntax.error_set import Fault

Oracle = Callable[[bytes, Sequence[tuple[int, int]]], Fault | None]
CODE_LINE = re.compile(rb"\n[ \t\f]*[^\s#][^\n]*")
CLAUSE = re.compile(rb"([ \t]*)(try(?=\s*:)|except\b|finally\b)")
LARGEST = 200_000  # bytes; a larger file takes the compiler more than some ten milliseconds


def python_syntax(text: bytes, spans: Sequence[tuple[int, int]]) -> Fault | None:
    """What CPython's parser finds at the fills (byte ranges ``spans``) or on the line behind them."""
    return _at_fills(text, spans, ast.PyCF_ONLY_AST)


def python_program(text: bytes, spans: Sequence[tuple[int, int]]) -> Fault | None:
    """The same of CPython's compiler, which also knows where ``return`` or ``await`` may stand."""
    return _at_fills(text, spans, 0) if len(text) <= LARGEST else None


def python_compiles(text: bytes) -> bool:
    """Whether CPython compiles a text; one too large to ask about counts as compiled."""
    return python_line(text) == 0


def python_line(text: bytes) -> int:
    """The line that CPython's compiler has something against; 0 for none, or for a text too large to ask about."""
    error = _refusal(text, 0) if len(text) <= LARGEST else None
    return (error.lineno or 1) if error is not None else 0


def _at_fills(text: bytes, spans: Sequence[tuple[int, int]], flags: int) -> Fault | None:
    error = _refusal(text, flags)
    if error is None:
        return None
    found, opened = error.lineno or 1, _open_try(text, error)
    for start, end in spans:
        if text.count(b"\n", 0, start) < (opened or found) <= text.count(b"\n", 0, next_code_line(text, end)) + 1:
            return Fault("SYNTAX", start, end)
    # the clauses that a "try" lacks are missing in one of the fills behind it
    behind = [span for span in spans if opened and opened <= text.count(b"\n", 0, span[0]) < found]
    return Fault("SYNTAX", *behind[-1]) if behind else None


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


@lru_cache(maxsize=2)  # a text that does not compile is asked about again, for where
def _refusal(text: bytes, flags: int) -> SyntaxError | None:
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
