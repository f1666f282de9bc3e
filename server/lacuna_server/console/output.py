"""Prints the output of the command line: JSON objects, filled text, diffs, tables and one-line messages."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lacuna_model.core.errors import LacunaError
from lacuna_model.core.params import InfillRequest, InfillResult, Region
from lacuna_model.text import diff
from lacuna_model.text.characters import well_formed
from lacuna_server import files
from lacuna_server.files import FileText

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

CONTEXT_LINES = 5
FILL_STYLE = "bold green"


def say(message: str) -> None:
    """Prints one line on stderr; does nothing where stderr cannot be written to."""
    with suppress(OSError):
        print(f"lacuna: {' '.join(well_formed(message).split())}", file=sys.stderr, flush=True)


def failure(error: LacunaError | OSError) -> str:
    """Returns the line that a command's failure is."""
    if isinstance(error, LacunaError):
        return str(error)
    place = f"{error.filename}: " if error.filename is not None else ""
    gone = isinstance(error, FileNotFoundError) and not place
    said = "the working folder has been deleted; change to another one" if gone else error.strerror or error
    return f"{place}{said}"


def print_exact(text: str) -> None:
    """Prints the text on stdout in UTF-8 byte for byte, whatever the locale."""
    sys.stdout.flush()
    sys.stdout.buffer.write(well_formed(text).encode())
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """Prints a value as JSON on one line."""
    print_exact(msgspec.json.encode(well_formed(value)).decode() + "\n")


def print_table(table: "Table") -> None:
    """Prints a table as wide as the terminal, or 160 columns wide where stdout is not a terminal.

    Long cells go on in the next line, but those of the first column: they are names to type, and stay whole.
    """
    from rich.console import Console

    console = Console()
    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"
    table.columns[0].min_width = console.measure("\n".join(map(str, table.columns[0].cells))).maximum
    Console(width=console.width if console.is_terminal else 160).print(table)


@contextmanager
def counting(what: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Shows a progress bar on stderr, or without a ``total`` a count.

    Yields a function that advances it by 1, or by its argument.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)

        def advance(done: int = 1) -> None:
            bar.advance(task, done)
            if total is None:
                bar.update(task, description=f"{what}: {bar.tasks[0].completed:.0f}")

        yield advance


def report(result: InfillResult, file: Path, model: str) -> dict[str, object]:
    """Returns the JSON object of a fill."""
    return {
        "status": result.status,
        "text": result.text,
        "fills": list(result.fills),
        "alternatives": result.alternatives,
        "confidence": result.confidence,
        "stats": result.stats,
        "message": result.message,
        "refused": list(result.refused),
        "file": str(file),
        "model": model,
    }


def in_document(document: FileText, request: InfillRequest, result: InfillResult) -> InfillResult:
    """Returns the result with the document's line endings in its fills and the original bytes outside the gaps."""
    if len(result.fills) != len(request.regions):
        return result
    fills = files.adapted(document, request, result.fills)
    text = document.text if result.status == "no_valid_fill" else files.filled(document, request.regions, fills)
    return msgspec.structs.replace(result, fills=fills, text=text)


def print_fill(document: FileText, regions: Sequence[Region], fills: Sequence[str]) -> None:
    """Prints the fills, highlighted, with the lines around them; without a terminal only the fills as plain text."""
    console = _screen()
    if console.is_terminal:
        console.print(_filled(document, regions, fills, CONTEXT_LINES), end="")
    else:
        print_exact("".join(fill if fill.endswith("\n") else fill + "\n" for fill in fills))


def print_document(document: FileText, regions: Sequence[Region], result: InfillResult) -> None:
    """Prints the whole filled file: highlighted on a terminal, byte for byte otherwise."""
    console = _screen()
    if console.is_terminal:
        console.print(_filled(document, regions, result.fills, None), end="")
    else:
        print_exact(result.text)


def print_diff(document: FileText, text: str) -> None:
    """Prints a short unified diff from the document to ``text``."""
    shown = diff.unified(document.text, text, str(document.path), context=2)
    console = _screen()
    if not console.is_terminal:
        print_exact(shown + "\n")
        return
    from rich.syntax import Syntax

    from lacuna_server.console.excerpt import THEME, printable

    console.print(Syntax(printable(shown), "diff", theme=THEME, background_color="default"))


def _screen() -> "Console":
    from rich.console import Console  # takes as long to load as all other imports of this module

    return Console()


def _filled(document: FileText, regions: Sequence[Region], fills: Sequence[str], context: int | None) -> "Text":
    from rich.text import Text

    from lacuna_server.console.excerpt import Excerpt, printable

    return Excerpt(document, regions, context).render([Text(printable(fill), style=FILL_STYLE) for fill in fills])
