"""Asks about each place of a plan in the terminal, with one key for each answer."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import typer

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, InfillResult
from lacuna_server.console import files, output
from lacuna_server.console.files import Document
from lacuna_server.refactor import review
from lacuna_server.refactor.fill import FileFill, finished
from lacuna_server.refactor.plan import Edit, FileEdits, Plan

HELP = """\
y  apply the change
n  leave the place as it is
e  edit the new text in $VISUAL or $EDITOR
r  show another fill
a  apply this change and all that follow
q  leave this place and all that follow as they are
?  show this help"""


class Questions:
    """Asks about the places of a plan. ``fills`` has the places by path, and ``answer`` answers requests for fills."""

    def __init__(self, fills: Mapping[str, FileFill], answer: Callable[[InfillRequest], InfillResult]) -> None:
        self._fills = fills
        self._answer = answer

    def ask(self, plan: Plan) -> Plan:
        """Shows and asks about place after place; returns the accepted edits. Raises RequestError at end of input."""
        kept: list[FileEdits] = []
        number, key = 0, ""
        for file in plan.ready.files:
            document = files.read(Path(file.path))
            accepted: list[Edit] = []
            for edit in file.edits:
                if edit.support:
                    accepted.append(edit)
                    continue
                number += 1
                if key not in ("a", "q"):
                    key, edit = self._decided(document, file, edit, f"{number}/{plan.num_ready}")
                if key in ("y", "a"):
                    accepted.append(edit)
            kept.append(msgspec.structs.replace(file, edits=tuple(accepted)))
        return msgspec.structs.replace(plan, files=tuple(kept)).ready

    def _decided(self, document: Document, file: FileEdits, edit: Edit, counter: str) -> tuple[str, Edit]:
        """Asks about one place until it is decided; returns the key, and the edit as the user wants it."""
        others: list[Edit] | None = None
        review.show_place(document, file, edit)
        while True:
            sure = f", confidence {edit.confidence:.2g}" if edit.confidence is not None else ""
            key = pressed(f"{counter} {edit.label}{sure}. Apply? [y, n, e, r, a, q, ?] ")
            shown = edit
            if key in ("y", "n", "a", "q"):
                return key, edit
            if key == "e":
                edit = self._edited(document, edit)
            elif key == "r":
                others = finished(self._fills[file.path].others(edit), self._answer) if others is None else others
                if others:
                    edit = others.pop(0)
                else:
                    output.say("there is no other fill")
            else:
                print(HELP, file=sys.stderr)
            if edit is not shown:
                review.show_place(document, file, edit)

    def _edited(self, document: Document, edit: Edit) -> Edit:
        """Returns the edit with the text that the user makes of it in an editor, as long as the file stays valid."""
        text = files.adapt_newlines(document, edited(edit.new_text, document.path.suffix))
        changed = msgspec.structs.replace(edit, new_text=text, confidence=None)
        if self._fills[str(document.path)].is_sound(changed):
            return changed
        output.say("with this text the file has a syntax error; the place keeps its text")
        return edit


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
