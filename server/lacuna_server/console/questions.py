"""Asks about one change after another in the terminal, with one key for each answer."""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Protocol, TypeVar

import typer

from lacuna_model.commands import output
from lacuna_model.core.errors import RequestError
from lacuna_server import files

HELP = """\
y  apply the change
n  leave the place as it is
e  edit the new text in $VISUAL or $EDITOR
r  show another fill
a  apply this change and all that follow
q  leave this place and all that follow as they are
?  show this help"""

Change = TypeVar("Change")


class Subject(Protocol[Change]):
    """What a question is about, in its present form ``change``."""

    def show(self, change: Change) -> None:
        """Show the change."""
        ...

    def describe(self, change: Change) -> str:
        """Return how the question names it."""
        ...

    def edit(self, change: Change) -> Change:
        """Return the change as the user edits it, or itself."""
        ...

    def other(self, change: Change) -> Change | None:
        """Return the change with another fill; None where there is none."""
        ...


def decided(subject: Subject[Change], change: Change) -> tuple[str, Change]:
    """Shows a change and asks until it is decided: returns y, n, a or q, and the change as the user wants it.

    Raises RequestError where the input has ended.
    """
    subject.show(change)
    while True:
        key = pressed(f"{subject.describe(change)}. Apply? [y, n, e, r, a, q, ?] ")
        shown = change
        if key in ("y", "n", "a", "q"):
            return key, change
        if key == "e":
            change = subject.edit(change)
        elif key == "r":
            if (other := subject.other(change)) is None:
                output.say("there is no other fill")
            else:
                change = other
        else:
            print(HELP, file=sys.stderr)
        if change is not shown:
            subject.show(change)


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


def edited(text: str, suffix: str) -> str:
    """Returns what the user makes of a text in an editor; the text itself where that fails."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"fill{suffix}")
        file.write_bytes(text.encode())
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)
            changed = files.decoded(file, file.read_bytes())
        except (OSError, ValueError, subprocess.CalledProcessError, RequestError) as error:
            output.say(f"the editor {editor} failed: {error}")
            return text
    # Most editors end a file with a newline.
    return changed if text.endswith("\n") else changed.removesuffix("\n").removesuffix("\r")
