"""Prints what commands say: JSON objects, exact text, tables, one-line messages and progress."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from lacuna_model.core.errors import LacunaError
from lacuna_model.text.lines import well_formed

if TYPE_CHECKING:
    from rich.table import Table


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
    print_exact(msgspec.json.encode(well_formed(msgspec.to_builtins(value))).decode() + "\n")


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
