from pathlib import Path

import pytest

from lacuna_model import atomic


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_file_appears_complete(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with atomic.replacing(target) as stream:
        stream.write(b"new")
        assert not target.exists()
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()], ids=["full", "interrupted"])
def test_a_failure_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")

    def fail_halfway() -> None:
        with atomic.replacing(target) as stream:
            stream.write(b"ne")
            raise error

    with pytest.raises(type(error)):
        fail_halfway()
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with atomic.replacing(target) as first, atomic.replacing(target) as second:
        first.write(b"a" * 9)
        second.write(b"b")
    assert target.read_bytes() == b"a" * 9


def test_only_parts_of_that_file_are_removed(tmp_path: Path) -> None:
    for name in (".file.1-ab.part", ".other.1-ab.part", "file"):
        (tmp_path / name).write_bytes(b"")
    atomic.remove_parts(tmp_path / "file")
    assert names(tmp_path) == [".other.1-ab.part", "file"]
