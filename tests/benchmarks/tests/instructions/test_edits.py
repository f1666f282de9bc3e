from pathlib import Path

import pytest
from tests.benchmarks.instructions.edits import measure, open_records, rows
from tests.benchmarks.instructions.tasks import Task

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult

TASK = Task("operations.py", (16, 23), "Do nothing if the field is missing.", lacks=("del doc",))
STATS = FillStats(nfe=3, tokens=12, ms=5.0)


def answer(request: InfillRequest) -> InfillResult:
    (region,) = request.regions
    text = request.text.encode()
    new = text[region.start : region.end].replace(b"del doc[field]", b"doc.pop(field, None)")
    return InfillResult("ok", (new.decode(),), STATS)


def refuse(request: InfillRequest) -> InfillResult:
    return InfillResult("no_valid_fill", ("x\n",), STATS, "no valid text was found")


def test_an_edit_is_judged_and_recorded(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    with open_records(file, "model", 1) as records:
        (one,) = measure([TASK], answer, records)
    with open_records(file, "model", 1) as records:
        (again,) = measure([TASK], refuse, records)  # not asked again
    assert (one.why, one.nfe, one.tokens) == ("", 3, 12)
    assert one.changed == pytest.approx(1 / 8)
    assert again == one
    with open_records(None, "model", 1) as records:
        (refused,) = measure([TASK], refuse, records)
    (row,) = rows([one, refused])
    assert (row["tasks"], row["right"], row["harmful"], row["refused"], row["small edits"]) == (2, 1, 0, 1, 1)
