import os
import stat
from pathlib import Path

import pytest

from lacuna_model.hub import atomic


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


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


def test_two_concurrent_writers_do_not_mix_their_data(tmp_path: Path) -> None:
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


def test_parts_are_found_by_the_exact_name_even_with_brackets_in_it(tmp_path: Path) -> None:
    for name in (".[id].tsx.12-ab.part", ".i.tsx.12-ab.part", ".[id].tsx.old.12-ab.part"):
        (tmp_path / name).write_bytes(b"")
    atomic.remove_parts(tmp_path / "[id].tsx")
    assert names(tmp_path) == [".[id].tsx.old.12-ab.part", ".i.tsx.12-ab.part"]


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_a_private_file_is_at_no_moment_readable_by_others(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with atomic.replacing(tmp_path / "file", private=True) as stream:
            assert stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == 0o600
        with atomic.replacing(tmp_path / "other"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o644
