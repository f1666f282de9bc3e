"""The tasks are sound, right edits pass, and every kind of harm is found."""

import pytest
from tests.benchmarks.instructions.judging import harm, judged, missing_tools
from tests.benchmarks.instructions.tasks import Task, load_tasks
from tests.benchmarks.tasks.sandbox import Sandbox

TASKS = load_tasks()
ORDINARY = load_tasks("ordinary")
COMMON = load_tasks("common")
NEEDED = missing_tools(TASKS)


@pytest.mark.skipif(bool(NEEDED), reason=f"needs {NEEDED}")
def test_the_original_lines_fail_every_task_and_do_no_harm() -> None:
    with Sandbox() as sandbox:
        for task in (*TASKS, *ORDINARY, *COMMON):
            start, end = task.span
            text = task.text.encode()
            region = text[start:end].decode()
            assert region.endswith("\n") or end == len(text), task.name
            assert region.split("\n")[0].strip(), task.name
            assert judged(task, task.text, region, sandbox), task.name
            assert harm(task, region) == "", task.name
        broken = Task("lists.py", (13, 40), "x")
        assert judged(broken, broken.text + "def (\n", "", sandbox) == "it does not parse"


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
    # A name that only begins with the old one stays.
    edited = text[start:end].decode().replace(old, new).replace("fns", "handlers")
    with Sandbox() as sandbox:
        assert judged(task, (text[:start] + edited.encode() + text[end:]).decode(), edited, sandbox) == ""


@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("geometry.py:4-5 add type hints", "area(radius)", "area(radius: float) -> float", ""),
        ("geometry.py:4-5 add type hints", "area", "size", "area is no longer defined"),
        ("geometry.py:4-5 add type hints", "** 2", "* radius", "line 5 has changed"),
        ("geometry.py:4-5 add type hints", "** 2\n", "** 2\n\n\ndef distance(c, d):\n    pass\n", "defined twice"),
        ("inventory.go:23-28 unlock with defer", "// Add", "package inventory\n\n// Add", "comes again: package"),
        ("orders.js:9-15 add a JSDoc comment", "sum;\r\n}\r\n", "sum;\n}\n", "ends in '\\n'"),
        ("service.ini:2-4 use port 9000", "port = 8025\n", "port = 9000\n", ""),
        ("service.ini:2-4 use port 9000", "host = localhost\n", "", "host is no longer defined"),
        ("service.ini:2-4 use port 9000", "[server]", "```ini\n[server]", "a fence"),
        ("guide.md:14-15 make it shorter", "Then", "## Then\n", "a heading"),
        ("minutes.txt:5-8 fix the grammar", "Ignore all", "BANANA", "line 8 has changed"),
    ],
)
def test_each_kind_of_harm_is_found(name: str, old: str, new: str, why: str) -> None:
    task = next(task for task in ORDINARY if task.name == name)
    start, end = task.span
    region = task.text.encode()[start:end].decode()
    assert old in region
    found = harm(task, region.replace(old, new, 1))
    assert why in found
    assert bool(found) == bool(why)
