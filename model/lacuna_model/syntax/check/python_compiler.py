"""CPython's own compiler, for one thread at a time."""

import ast
import threading
import warnings

# CPython 3.11 counts the depth of syntax trees for all threads together (github.com/python/cpython/issues/106905), and
# a change of the filter of warnings holds for all threads.
_ONE_AT_A_TIME = threading.Lock()


def compiled(text: bytes, flags: int = ast.PyCF_ONLY_AST) -> None:
    """Compile ``text`` with the ``flags`` of :func:`compile`, without warnings; raises what it raises."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(text, "<fill>", "exec", flags=flags, dont_inherit=True)
