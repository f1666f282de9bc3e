"""Python, which CPython's compiler reads in the end."""

import re
import sys
import threading
import warnings

from lacuna_model.languages.language import Language, Lexicon, StrictParsers

# CPython 3.11 counts the depth of syntax trees for all threads together (github.com/python/cpython/issues/106905), and
# a change of the filter of warnings holds for all threads.
_ONE_AT_A_TIME = threading.Lock()
_NEUTRAL = ("", "x", "pass", "x: pass", "x:", ":", " x", " x:", "x)", "x):", "x]", "x}", '"')
_LINES = ("pass", "if x:", "try:", "except:", "except: pass", "finally: pass", "else:", "case _:", "x,")
# An interpreter from 3.14 on reads all that follows.
_NEWER = re.compile(
    rb"\btype[ \t]+\w|\b(?:def|class)[ \t]+\w+[ \t]*\[|\bexcept\b[^:\n(]*,|\b(?:[fFtT][rR]?|[rR][fFtT])[\"']"
    if sys.version_info < (3, 14)
    else rb"(?!)"
)
COMPILED_NS = 270  # of work, for each byte


def compiled(text: str) -> None:
    """Compile a text as the bytes of a file, without warnings; raises what :func:`compile` raises."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(text.encode(), "<fill>", "exec", dont_inherit=True)


_PYTHON_HEADERS = frozenset(b"if elif else for while def class with try except finally async match case".split())

PYTHON = Language(
    "python",
    (".py", ".pyi", ".pyw"),
    "tree_sitter_python",
    aliases=("py", "python3"),
    lexicon=Lexicon(
        links=(b" in x", b" else x", b"=x"),
        declarations=(b"def x(): pass",),
        line_comment=(b"#",),
        block_comment=(),
        quotes=(b'"""', b"'''", b'"', b"'"),
        columns=True,
        statement=b"pass",
        body=b": pass",
        terminator=b"",
        headers=_PYTHON_HEADERS,
    ),
    strict=StrictParsers((compiled,), _NEUTRAL, 200_000, _NEWER, _LINES, COMPILED_NS),
    definitions=("python",),
)
