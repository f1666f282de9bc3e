import os
from pathlib import Path

import pytest

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.apply import apply, writable
from lacuna_server.refactor.plan import FileEdits, Plan, PlannedEdit, sha256
from lacuna_server.refactor.rewriting.refactoring import by_structure, places

from .bench import Bench


def plan(*paths: Path) -> Plan:
    edits = (PlannedEdit(4, 5, "2", "one"), PlannedEdit(6, 6, "", "two", "failed", "nothing fits"))
    return Plan("t", tuple(FileEdits(str(path), sha256(path.read_bytes()), None, edits) for path in paths))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_bytes(b"x = 1\r\n")
    return [tmp_path / "a.py", tmp_path / "b.py"]


def test_a_read_only_file_and_one_with_other_names_are_left_out_and_named(files: list[Path], bench: Bench) -> None:
    files[0].chmod(0o444)
    os.link(files[1], files[1].with_name("other.py"))
    sources = [bench.source(path.read_text(), str(path)) for path in files]
    kept, left_out = writable(places(by_structure("x = $A", "y = $A"), sources)[0])
    assert kept == []
    assert left_out == [
        f"{files[0]} is read-only; not changed",
        f"{files[1]} has 2 hard links, and the others would keep the old text; not changed",
    ]


@pytest.mark.parametrize("how", ["read-only", "hard links"])
def test_a_plan_does_not_replace_a_file_that_must_not_be(files: list[Path], how: str) -> None:
    made = plan(*files)
    files[1].chmod(0o444) if how == "read-only" else os.link(files[1], files[1].with_name("other.py"))
    with pytest.raises(RequestError, match=rf"b\.py .*{how}.*; nothing was written"):
        apply(made)
    assert files[0].read_bytes() == files[1].read_bytes() == b"x = 1\r\n"
