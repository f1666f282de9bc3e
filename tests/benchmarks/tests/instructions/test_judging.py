"""The tasks are sound, a right edit passes and is recorded, and every kind of harm is found."""

from pathlib import Path

import pytest
from tests.benchmarks.instructions.edits import measure, open_records, rows
from tests.benchmarks.instructions.judging import harm, judged, missing_tools
from tests.benchmarks.instructions.tasks import Task, load_tasks

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult

ORDINARY = load_tasks("ordinary")
TASKS = [*load_tasks(), *ORDINARY, *load_tasks("common")]
NEEDED = missing_tools(TASKS)


@pytest.mark.skipif(bool(NEEDED), reason=f"needs {NEEDED}")
def test_the_original_lines_fail_every_task_and_do_no_harm() -> None:
    for task in TASKS:
        start, end = task.span
        text = task.text.encode()
        region = text[start:end].decode()
        assert region.endswith("\n") or end == len(text), task.name
        assert region.split("\n")[0].strip(), task.name
        assert judged(task, task.text, region), task.name
        assert harm(task, region) == "", task.name


def test_an_edit_is_judged_and_recorded(tmp_path: Path) -> None:
    task = Task("operations.py", (16, 23), "Do nothing if the field is missing.", lacks=("del doc",))

    def answer(request: InfillRequest) -> InfillResult:
        (region,) = request.regions
        new = request.text.encode()[region.start : region.end].replace(b"del doc[field]", b"doc.pop(field, None)")
        return InfillResult("ok", (new.decode(),), FillStats(nfe=3, tokens=12, ms=5.0))

    def refuse(request: InfillRequest) -> InfillResult:
        return InfillResult("no_valid_fill", ("x\n",), FillStats(), "no valid text was found")

    for fill in (answer, refuse):  # what is recorded is not asked again
        with open_records(tmp_path / "records", "model", 1) as records:
            (one,) = measure([task], fill, records)
        assert (one.why, one.nfe, one.tokens, one.changed) == ("", 3, 12, 0.125)
    with open_records(None, "model", 1) as records:
        (row,) = rows([one, *measure([task], refuse, records)])
    assert (row["tasks"], row["right"], row["harmful"], row["refused"], row["small edits"]) == (2, 1, 0, 1, 1)


@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("geometry.py:4-5 add type hints", "area(radius)", "area(radius: float) -> float", ""),
        ("geometry.py:4-5 add type hints", "area", "size", "area is no longer defined"),
        ("geometry.py:4-5 add type hints", "** 2", "* radius", "line 5 has changed"),
        ("geometry.py:4-5 add type hints", "** 2\n", "** 2\n\n\ndef distance(c, d):\n    pass\n", "defined twice"),
        ("inventory.go:23-28 unlock with defer", "// Add", "package inventory\n\n// Add", "comes again: package"),
        ("orders.js:9-15 add a JSDoc comment", "sum;\r\n}\r\n", "sum;\n}\n", "ends in '\\n'"),
        ("service.ini:2-4 use port 9000", "host = localhost\n", "", "host is no longer defined"),
        ("service.ini:2-4 use port 9000", "[server]", "```ini\n[server]", "a fence"),
        ("guide.md:14-15 make it shorter", "Then", "## Then\n", "a heading"),
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
