"""Docstrings that users read as help, also where Python was told to drop them (``-OO``, ``PYTHONOPTIMIZE=2``)."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def documented(function: F) -> F:
    """Returns a function with its docstring, read from its source where Python dropped it."""
    if function.__doc__ is None:
        try:
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
        except (OSError, SyntaxError, ValueError):  # no source is installed
            return function
        assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
        function.__doc__ = ast.get_docstring(definition)
    return function
