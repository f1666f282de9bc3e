"""``lacuna logs``: shows the log of the service or of the language server."""

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from lacuna_model.commands import output
from lacuna_server.client.starting import log_path

NO_LOG = 1
POLL_S = 0.3


def logs(
    which: Annotated[
        Literal["service", "lsp"], typer.Argument(metavar="service|lsp", help="The program that writes the log.")
    ] = "service",
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Print this many of the last lines.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on printing new lines until Ctrl-C.")] = False,
    path: Annotated[bool, typer.Option("--path", help="Print only the path of the log.")] = False,
) -> None:
    """Show the last lines of the log of the service that an editor started, or of the language server."""
    file = log_path(which)
    if path:
        output.print_exact(f"{file}\n")
        return
    if not file.is_file() and not follow:
        output.say(f"there is no log yet: {file}")
        raise typer.Exit(NO_LOG)
    output.say(str(file))
    end = _print_last(file, lines)
    while follow:
        time.sleep(POLL_S)
        end = _print_from(file, end)


def _print_last(file: Path, count: int) -> int:
    """Prints the last lines; returns where the file ended."""
    data = file.read_bytes() if file.is_file() else b""
    output.print_exact(_text(b"".join(data.splitlines(keepends=True)[-count:] if count else [])))
    return len(data)


def _print_from(file: Path, begin: int) -> int:
    """Prints what was added; a file that became shorter was begun anew."""
    size = file.stat().st_size if file.is_file() else 0
    if size == begin:
        return begin
    with file.open("rb") as stream:
        stream.seek(begin if size > begin else 0)
        output.print_exact(_text(stream.read()))
        return stream.tell()


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def add_to(app: typer.Typer) -> None:
    """Registers the command."""
    app.command()(logs)
