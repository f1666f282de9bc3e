"""Prints fills, documents and diffs: highlighted on a terminal, byte for byte elsewhere.

What highlights is loaded where there is a terminal.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lacuna_model.commands.output import print_exact
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, InfillResult, Region
from lacuna_model.text import diff
from lacuna_model.text.lines import line_starts
from lacuna_server import files
from lacuna_server.files import FileText

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

CONTEXT_LINES = 5
FILL_STYLE = "bold green"
LINES = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")


def lines_at(document: FileText, lines: str) -> tuple[int, int]:
    """Returns the byte offsets of whole lines ``A:B`` or ``A``, counted from 1.

    Raises RequestError for another form and for lines outside the document.
    """
    match = LINES.fullmatch(lines.strip())
    if match is None:
        raise RequestError(f"lines are A:B, such as 10:20, not {lines!r}")
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= first <= last:
        raise RequestError(f"lines are counted from 1, and the first comes before the last; not {lines!r}")
    data = document.text.encode()
    starts = [start for start in line_starts(data) if start < len(data)]
    if last > len(starts):
        raise RequestError(f"line {last} is outside {document.path}, which has {len(starts)} lines")
    ends = [*starts[1:], len(data)]
    return starts[first - 1] or len(files.BOM.encode()) * document.text.startswith(files.BOM), ends[last - 1]


def report(request: InfillRequest, result: InfillResult, file: Path, model: str) -> dict[str, object]:
    """Returns the JSON object of a fill."""
    return {
        "status": result.status,
        "text": request.filled(result.fills),
        "fills": list(result.fills),
        "alternatives": result.alternatives,
        "confidence": result.confidence,
        "stats": result.stats,
        "message": result.message,
        "refused": list(result.refused),
        "warnings": list(result.warnings),
        "file": str(file),
        "model": model,
    }


def print_fill(document: FileText, regions: Sequence[Region], fills: Sequence[str]) -> None:
    """Prints the fills, highlighted, with the lines around them; without a terminal only the fills as plain text."""
    console = _screen()
    if console.is_terminal:
        console.print(_filled(document, regions, fills, CONTEXT_LINES), end="")
    else:
        print_exact("".join(fill if fill.endswith("\n") else fill + "\n" for fill in fills))


def print_document(document: FileText, request: InfillRequest, fills: Sequence[str]) -> None:
    """Prints the whole filled file: highlighted on a terminal, byte for byte otherwise."""
    console = _screen()
    if console.is_terminal:
        console.print(_filled(document, request.regions, fills, None), end="")
    else:
        print_exact(request.filled(fills))


def print_diff(document: FileText, text: str) -> None:
    """Prints a short unified diff from the document to ``text``."""
    shown = diff.unified(document.text, text, str(document.path), context=2)
    console = _screen()
    if not console.is_terminal:
        print_exact(shown + "\n")
        return
    from rich.syntax import Syntax

    from lacuna_server.console.live import THEME, printable

    console.print(Syntax(printable(shown), "diff", theme=THEME, background_color="default"))


def _screen() -> "Console":
    from rich.console import Console  # takes as long to load as all other imports of this module

    return Console()


def _filled(document: FileText, regions: Sequence[Region], fills: Sequence[str], context: int | None) -> "Text":
    from rich.text import Text

    from lacuna_server.console.live import Excerpt, printable

    return Excerpt(document, regions, context).render([Text(printable(fill), style=FILL_STYLE) for fill in fills])
