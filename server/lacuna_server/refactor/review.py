"""Shows a plan in the terminal: its diff, the places that were left out, and a question for each place."""

from pathlib import Path

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_server.console import files, output
from lacuna_server.console.files import Document
from lacuna_server.refactor.plan import FileEdits, Plan

QUESTION = "Apply? y: yes, n: no, a: this one and all that follow, q: none of the rest"


def show(plan: Plan) -> None:
    """Prints the unified diff of all files."""
    for file in plan.ready.files:
        _show_file(files.read(Path(file.path)), file)


def report(plan: Plan) -> None:
    """Reports on stderr the places that are not in the diff: failed ones and those left out."""
    for file in plan.files:
        for edit in file.edits:
            if edit.status == "failed":
                output.say(f"{file.path}: {edit.label}: {edit.message}; left as it was")
    for line in plan.left_out:
        output.say(line)


def ask_each(plan: Plan) -> Plan:
    """Shows place after place and asks for each; returns the accepted edits. Raises RequestError if the input ends."""
    kept: list[FileEdits] = []
    answer = ""
    for file in plan.ready.files:
        document = files.read(Path(file.path))
        accepted: set[int] = set()
        for index, edit in enumerate(file.edits):
            if edit.support or answer == "q":
                continue
            if answer != "a":
                _show_file(document, msgspec.structs.replace(file, edits=(edit,)))
                answer = _ask()
            if answer in ("y", "a"):
                accepted.add(index)
        kept.append(file.only(accepted))
    return msgspec.structs.replace(plan, files=tuple(kept)).ready


def _ask() -> str:
    from rich.prompt import Prompt

    try:
        return Prompt.ask(QUESTION, choices=["y", "n", "a", "q"], show_choices=False)
    except EOFError as error:
        raise RequestError("the input ended before every place was decided; nothing was written") from error


def _show_file(document: Document, file: FileEdits) -> None:
    output.print_diff(document, file.rewritten(document.text.encode()).decode())
