"""Diagnostics of the open file from the editor's tools, as comments that the model can read."""

from collections.abc import Callable, Sequence

from lacuna_model.core.params import Diagnostic, Snippet
from lacuna_model.snippets.format import comment

_MAX_MESSAGE = 160
_MAX_MESSAGES = 6
_SCORE = 0.9


def diagnostics_snippet(
    diagnostics: Sequence[Diagnostic], path: str, language: str, row: int, fits: Callable[[Snippet], bool]
) -> Snippet | None:
    """One snippet of comments with the messages nearest to ``row``, as many as fit; None where none does."""
    nearest = sorted(diagnostics, key=lambda one: (abs(one.line - row), one.line, one.message))[:_MAX_MESSAGES]
    for count in range(len(nearest), 0, -1):
        shown = sorted(nearest[:count], key=lambda one: (one.line, one.message))
        text = "".join(comment(f"line {one.line + 1}: {_one_line(one.message)}", path, language) for one in shown)
        snippet = Snippet(path, text, "what the editor reports of this file", _SCORE)
        if fits(snippet):
            return snippet
    return None


def _one_line(message: str) -> str:
    return " ".join(message.split())[:_MAX_MESSAGE]
