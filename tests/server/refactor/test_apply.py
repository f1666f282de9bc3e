from pathlib import Path

import pytest

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.apply import apply
from lacuna_server.refactor.plan import Edit, FileEdits, Plan, sha256


def plan(*paths: Path) -> Plan:
    edits = (Edit(4, 5, "2", "one"), Edit(6, 6, "", "two", "failed", "nothing fits"))
    return Plan("t", tuple(FileEdits(str(path), sha256(path.read_bytes()), None, edits) for path in paths))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_bytes(b"x = 1\r\n")
    return [tmp_path / "a.py", tmp_path / "b.py"]


def test_ready_edits_are_written(files: list[Path]) -> None:
    assert apply(plan(*files)) == [str(path) for path in files]
    assert [path.read_bytes() for path in files] == [b"x = 2\r\n"] * 2


@pytest.mark.parametrize("gone", [False, True], ids=["changed", "gone"])
def test_a_file_that_changed_since_the_preview_stops_everything(files: list[Path], gone: bool) -> None:
    made = plan(*files)
    files[1].unlink() if gone else files[1].write_bytes(b"y = 1\r\n")
    with pytest.raises(RequestError, match=r"b\.py.*nothing was written"):
        apply(made)
    assert files[0].read_bytes() == b"x = 1\r\n"
