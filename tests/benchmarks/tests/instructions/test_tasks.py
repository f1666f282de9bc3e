"""The tasks are sound: the original fails each one, so that nothing passes without an edit, and does no harm."""

import pytest
from tests.benchmarks.instructions.harm import harm
from tests.benchmarks.instructions.judging import judged, missing_tools
from tests.benchmarks.instructions.tasks import Task, load_tasks
from tests.benchmarks.tasks.sandbox import Sandbox

TASKS = load_tasks()
ORDINARY = load_tasks("ordinary")
COMMON = load_tasks("common")
NEEDED = missing_tools(TASKS)


def test_every_region_is_whole_lines_with_code() -> None:
    for task in (*TASKS, *ORDINARY, *COMMON):
        start, end = task.span
        text = task.text.encode()
        assert text[end - 1 : end] == b"\n" or end == len(text), task.name
        assert text[start:end].split(b"\n")[0].strip(), task.name


@pytest.mark.skipif(bool(NEEDED), reason=f"needs {NEEDED}")
def test_the_original_fails_every_task() -> None:
    with Sandbox() as sandbox:
        for task in (*TASKS, *ORDINARY, *COMMON):
            start, end = task.span
            region = task.text.encode()[start:end].decode()
            assert judged(task, task.text, region, sandbox), task.name
            assert harm(task, region) == "", task.name


@pytest.mark.parametrize(
    ("instruction", "old", "new"),
    [
        ("Return null instead of -1.", "return -1;", "return null;"),
        ("Rename new_str to copy.", "new_str", "copy"),
        ("Do nothing if the field is missing.", "del doc[field]", "doc.pop(field, None)"),
        ("Rename the parameter handler to fn.", "handler", "fn"),
        ("Remove the comment.", "    // properly capture stack trace in Node.js\n", ""),
    ],
)
@pytest.mark.skipif(bool(NEEDED), reason=f"needs {NEEDED}")
def test_a_right_edit_passes(instruction: str, old: str, new: str) -> None:
    task = next(task for task in TASKS if task.instruction == instruction and old in task.text)
    start, end = task.span
    text = task.text.encode()
    region = text[start:end].decode()
    edited = region.replace(old, new)
    # A name that only begins with the old one stays.
    edited = edited.replace("fns", "handlers")
    whole = (text[:start] + edited.encode() + text[end:]).decode()
    with Sandbox() as sandbox:
        assert judged(task, whole, edited, sandbox) == ""


def test_a_file_that_does_not_parse_is_wrong() -> None:
    task = Task("lists.py", (13, 40), "x")
    with Sandbox() as sandbox:
        assert judged(task, task.text + "def (\n", "", sandbox) == "it does not parse"
