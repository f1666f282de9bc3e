"""The program that judges harm finds every kind of it."""

import pytest
from tests.benchmarks.instructions.harm import harm
from tests.benchmarks.instructions.tasks import load_tasks

TASKS = {task.name: task for task in load_tasks("ordinary")}


def done(name: str, old: str, new: str) -> str:
    task = TASKS[name]
    start, end = task.span
    text = task.text.encode()
    region = text[start:end].decode()
    assert old in region
    return harm(task, region.replace(old, new, 1))


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
    found = done(name, old, new)
    assert why in found
    assert bool(found) == bool(why)
