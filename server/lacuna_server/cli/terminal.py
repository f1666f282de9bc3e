"""Prints fills, documents and diffs, and asks about one change after another, with one key for each answer.

What is printed is highlighted on a terminal, and is byte for byte the text elsewhere. What highlights is loaded where
there is a terminal.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from lacuna_model.commands import output
from lacuna_model.commands.output import print_exact
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, InfillResult, Region
from lacuna_model.text import diff
from lacuna_server import files
from lacuna_server.files import FileText

if TYPE_CHECKING:
    from rich.console import Console

CONTEXT_LINES = 5


def report(request: InfillRequest, result: InfillResult, file: Path, model: str) -> dict[str, object]:
    """Returns the JSON object of a fill."""
    of_result = ("fills", "alternatives", "confidence", "stats", "message", "refused", "warnings")
    shown = {name: getattr(result, name) for name in of_result}
    return {"status": result.status, "text": request.filled(result.fills)} | shown | {"file": str(file), "model": model}


def print_fills(document: FileText, regions: Sequence[Region], fills: Sequence[str]) -> None:
    """Prints the fills, highlighted, with the lines around them; without a terminal only the fills as plain text."""
    plain = "".join(fill if fill.endswith("\n") else fill + "\n" for fill in fills)
    print_filled(document, regions, fills, plain, CONTEXT_LINES)


def print_filled(
    document: FileText, regions: Sequence[Region], fills: Sequence[str], plain: str, context: int | None = None
) -> None:
    """Prints a file with its fills: on a terminal highlighted, with so many lines around them, elsewhere ``plain``."""
    console = _screen()
    if not console.is_terminal:
        print_exact(plain)
        return
    from rich.text import Text

    from lacuna_server.cli.live import DONE_STYLE, Excerpt, printable

    shown = Excerpt(document, regions, context).render([Text(printable(fill), style=DONE_STYLE) for fill in fills])
    console.print(shown, end="")


def print_diff(document: FileText, text: str) -> None:
    """Prints a short unified diff from the document to ``text``."""
    shown = diff.unified(document.text, text, str(document.path), context=2)
    console = _screen()
    if not console.is_terminal:
        print_exact(shown + "\n")
        return
    from rich.syntax import Syntax

    from lacuna_server.cli.live import THEME, printable

    whole = printable(shown)  # long lines go on below: a person confirms what is shown
    syntax = Syntax("", "diff", theme=THEME, background_color="default")
    console.print(syntax.highlight(whole), end="", soft_wrap=True)


def _screen() -> "Console":
    from rich.console import Console  # takes as long to load as all other imports of this module

    # FORCE_COLOR and the like make a terminal of a file for rich; a file gets the text alone.
    return Console(force_terminal=None if sys.stdout.isatty() else False)


HELP = """\
y  apply the change
n  leave the place as it is
e  edit the new text in $VISUAL or $EDITOR
r  show another fill
a  apply this change and all that follow
q  leave this place and all that follow as they are
?  show this help"""

Change = TypeVar("Change")


def decided(
    change: Change,
    show: Callable[[Change], None],
    describe: Callable[[Change], str],
    edit: Callable[[Change], Change],
    other: Callable[[Change], Change | None],
) -> tuple[str, Change]:
    """Shows a change and asks until it is decided: returns y, n, a or q, and the change as the user wants it.

    ``other`` gives it another fill, if there is any. Raises RequestError where the input has ended.
    """
    key, shown = "", None
    while key not in ("y", "n", "a", "q"):
        if change is not shown:
            show(change)
            shown = change
        key = pressed(f"{describe(change)}. Apply? [y, n, e, r, a, q, ?] ")
        if key == "e":
            change = edit(change)
        elif key == "r":
            if (found := other(change)) is None:
                output.say("there is no other fill")
            else:
                change = found
        elif key not in ("y", "n", "a", "q"):
            print(HELP, file=sys.stderr)
    return key, change


def is_answered() -> bool:
    """Whether a person is there to answer: on a terminal that shows them the question, too."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def pressed(question: str) -> str:
    """Asks a question and returns the key that is pressed: on a terminal without Enter, else the first of a line.

    Raises RequestError where the input has ended.
    """
    print(question, end="", file=sys.stderr, flush=True)
    try:
        if sys.stdin.isatty():
            key = typer.getchar()
            print(key if key.isprintable() else "", file=sys.stderr)
            return key
        if line := sys.stdin.readline():
            return line[:1]
    except EOFError:
        pass
    raise RequestError("the input ended before every place was decided; nothing was written")


def edited(document: FileText, text: str) -> str:
    """Returns what the user makes of a part of a document in an editor; the text itself where that fails."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"fill{document.path.suffix}")
        file.write_bytes(text.encode())
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)
            changed = files.decoded(file, file.read_bytes())
        except (OSError, ValueError, subprocess.CalledProcessError, RequestError) as error:
            output.say(f"the editor {editor} failed: {error}")
            return text
    if not text.endswith("\n"):  # most editors end a file with a newline
        changed = changed.removesuffix("\n").removesuffix("\r")
    return files.adapt_newlines(document, changed)
