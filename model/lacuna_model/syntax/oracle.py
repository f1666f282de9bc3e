"""Strict oracles: what the language itself says about a finished file, where asking costs milliseconds.

Only CPython's compiler is that close. A file's brokenness must not grow: an original that compiles stays so; one
that does not (it has gaps) may keep an error elsewhere, but none inside a fill.
"""

import ast
import warnings
from collections.abc import Callable, Sequence

Oracle = Callable[[bytes, bytes, Sequence[tuple[int, int]]], str]


def python_oracle(original: bytes, filled: bytes, spans: Sequence[tuple[int, int]]) -> str:
    """Why CPython refuses the filled text because of its fills (byte ranges ``spans``), or "" if it does not."""
    error = _compile_error(filled)
    if error is None:
        return ""
    message = f"{error.msg} at line {error.lineno}"
    if _compile_error(original) is None:
        return message
    line = error.lineno or 1
    first_lines = [filled.count(b"\n", 0, start) + 1 for start, _ in spans]
    last_lines = [filled.count(b"\n", 0, end) + 1 for _, end in spans]
    inside = any(first <= line <= last for first, last in zip(first_lines, last_lines, strict=True))
    return message if inside else ""


def _compile_error(text: bytes) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(ast.parse(text), "<fill>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):  # null bytes, nesting beyond the compiler's own limits
        return SyntaxError("the compiler gave up")
    return None


ORACLES: dict[str, Oracle] = {"python": python_oracle}
