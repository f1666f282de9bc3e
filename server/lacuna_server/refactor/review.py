"""Shows a plan in the terminal: its diff, and the places that were left out."""

from pathlib import Path

import msgspec

from lacuna_server.console import files, output
from lacuna_server.console.files import Document
from lacuna_server.refactor.plan import Edit, FileEdits, Plan


def show(plan: Plan) -> None:
    """Prints the unified diff of all files."""
    for file in plan.ready.files:
        document = files.read(Path(file.path))
        output.print_diff(document, file.rewritten(document.text.encode()).decode())


def show_place(document: Document, file: FileEdits, edit: Edit) -> None:
    """Prints the diff of one place."""
    output.print_diff(document, msgspec.structs.replace(file, edits=(edit,)).rewritten(document.text.encode()).decode())


def report(plan: Plan) -> None:
    """Reports on stderr the places that are not in the diff: failed and unsure ones, and those left out."""
    for file in plan.files:
        for edit in file.edits:
            if edit.status != "ready":
                output.say(f"{file.path}: {edit.label}: {edit.message}; not changed")
    for line in plan.left_out:
        output.say(line)
    if plan.num_unsure:
        output.say("--min-confidence 0 shows these unsure fills, too")
