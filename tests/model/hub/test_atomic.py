"""Code and weights are loaded only from files that no other user can write; of optional files the latest stay."""

import errno
import logging
import os
import stat
from pathlib import Path

import pytest

from lacuna_kernels import native
from lacuna_model.hub import atomic
from lacuna_model.hub.atomic import keep

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows knows other rules")


def test_a_folder_of_this_user_is_closed_to_writes_of_others(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o777)
    atomic.make_private(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("mask", [0o000, 0o077], ids=oct)
def test_files_are_trusted_whatever_the_umask(mask: int, tmp_path: Path) -> None:
    old = os.umask(mask)
    try:
        keep(tmp_path / "prepared" / "model", "*", lambda stream: stream.write(b"prepared"))
    finally:
        os.umask(old)
    assert (tmp_path / "prepared").stat().st_mode & 0o777 == 0o700
    assert atomic.is_trusted(tmp_path / "prepared" / "model")


@pytest.mark.parametrize(
    ("folder", "file", "trusted"), [(0o755, 0o644, True), (0o775, 0o644, False), (0o755, 0o664, False)]
)
def test_a_file_that_others_can_write_to_is_not_trusted(tmp_path: Path, folder: int, file: int, trusted: bool) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "f").write_text("x")
    (inner / "f").chmod(file)
    inner.chmod(folder)
    assert atomic.is_trusted(inner / "f") is trusted


@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    os.chown(tmp_path / "f", 12345, 12345)
    assert not atomic.is_trusted(tmp_path / "f")


def test_a_checksum_that_others_could_have_written_is_computed_again(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    right = atomic.remembered(file)
    (note,) = (path for path in tmp_path.iterdir() if path != file)
    note.write_bytes(note.read_bytes().replace(right.encode(), b"0" * 64))
    assert atomic.remembered(file) == "0" * 64  # a note that only this user can write is trusted
    note.chmod(0o666)
    assert atomic.remembered(file) == right
    note.write_text("{")
    assert atomic.remembered(file) == right


def test_a_library_that_others_can_write_to_is_not_loaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    if not native.supported():
        pytest.skip("no instructions that the library has a form for")
    folder = tmp_path / "kernels"
    if native.load(folder, 1) is None:
        pytest.skip("no C compiler")
    (library,) = folder.iterdir()
    folder.chmod(0o777)
    with caplog.at_level(logging.WARNING):
        assert native.load(folder, 1) is not None  # compiled for this process alone
    assert "is of no use" in caplog.text
    assert library.exists()


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


def test_a_file_is_written_where_folders_cannot_be_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = os.fsync

    def flush_files(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", flush_files)
    with atomic.replacing(tmp_path / "a") as stream:
        stream.write(b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_two_concurrent_writers_do_not_mix_their_data(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with atomic.replacing(target) as first, atomic.replacing(target) as second:
        first.write(b"a" * 9)
        second.write(b"b")
    assert target.read_bytes() == b"a" * 9


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


def written(folder: Path, sizes: list[int], **limits: int) -> list[str]:
    """Write files of these sizes, one after the other, and return the names of those that stay."""
    for number, size in enumerate(sizes):
        file = folder / f"{number}.form"
        keep(file, "*.form", lambda stream, size=size: stream.write(bytes(size)), **limits)
        os.utime(file, (number, number))
    return sorted(one.name for one in folder.iterdir())


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        pytest.param([50, 1, 1, 1], "0123", id="small ones do not remove a large one"),
        pytest.param([1, 50, 60, 1], "23", id="older ones go where the later fill the space"),
        pytest.param([5, 50, 50, 1], "123", id="an older one goes where all do not fit"),
        pytest.param([200, 200, 200], "12", id="the latest stay whatever they take"),
    ],
)
def test_the_latest_files_stay_and_older_ones_that_fit(tmp_path: Path, sizes: list[int], kept: str) -> None:
    assert "".join(name[0] for name in written(tmp_path, sizes, most=2, most_bytes=105)) == kept


def test_files_that_were_not_used_for_long_go(tmp_path: Path) -> None:
    (tmp_path / "old.form").touch()
    os.utime(tmp_path / "old.form", (1, 1))
    keep(tmp_path / "new.form", "*.form", lambda stream: None, max_age_s=3600)
    assert names(tmp_path) == ["new.form"]
