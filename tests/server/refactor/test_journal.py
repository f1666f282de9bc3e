import json
import os
import stat
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

import filelock
import pytest

from lacuna_model.core.errors import RequestError
from lacuna_model.hub import atomic
from lacuna_server.refactor import journal
from lacuna_server.refactor.journal import recover, replace_all
from lacuna_server.refactor.plan import FileEdits, Plan, PlannedEdit, apply

from . import killing

Contents = list[tuple[Path, bytes, bytes]]


@pytest.fixture
def contents(tmp_path: Path) -> Contents:
    return killing.prepare(tmp_path, 5)


def leftovers(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if path.suffix in (".part", ".journal")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the test needs os.fork")
def test_a_refactor_that_is_killed_at_any_step_changes_all_files_or_none(tmp_path: Path, state: Path) -> None:
    command = [sys.executable, str(Path(killing.__file__)), str(tmp_path), "5"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    reports = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(reports) > 20
    for report in reports:
        assert "broken" not in report["killed"]
        assert report["after"] in (["old"] * 5, ["new"] * 5)
        assert report["left"] == []
        assert report["modes"] == ["0o640"]
    for action in ("replace", "recover"):
        torn = [report for report in reports if report["action"] == action and len(set(report["killed"])) == 2]
        assert any(report["said"] for report in torn)
    assert [report["after"][0] for report in reports if report["ended"]] == ["new", "old"]


def fail_at_third(patch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let the third file that is replaced raise an error."""
    real, done = os.replace, 0

    def failing(source: str, target: str) -> None:
        nonlocal done
        done += str(target).endswith(".py")
        if done == 3:
            raise error
        real(source, target)

    patch.setattr(journal.os, "replace", failing)


def test_a_failure_half_way_restores_every_file(
    contents: Contents, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_at_third(patch, OSError(28, "No space left on device", "2.py"))
        with pytest.raises(RequestError, match=r"cannot write .*2\.py: No space left on device; nothing was changed"):
            replace_all(contents)
    assert killing.state(contents) == ["old"] * 5
    assert leftovers(tmp_path, state) == []


def test_links_keep_their_target(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_bytes(b"old")
    (tmp_path / "link.py").symlink_to("real.py")
    replace_all([(tmp_path / "link.py", b"old", b"new")])
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.py").read_bytes() == b"new"


def cut_off(contents: Contents, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupt a refactor after it has replaced two files. Its journal remains."""
    with monkeypatch.context() as patch:
        fail_at_third(patch, KeyboardInterrupt())
        patch.setattr(journal, "_put_back", lambda path: [])
        with pytest.raises(KeyboardInterrupt):
            replace_all(contents)
    assert killing.state(contents) == ["new", "new", "old", "old", "old"]


def test_recovery_does_not_change_a_file_that_was_edited_since(
    contents: Contents, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(contents, monkeypatch)
    contents[0][0].write_bytes(b"mine\n")
    said = recover()
    assert [line.split(": ")[1][:8] for line in said] == ["left as ", "put back"]
    assert contents[0][0].read_bytes() == b"mine\n"
    assert killing.state(contents[1:]) == ["old"] * 4
    assert leftovers(tmp_path, state) == []
    assert recover() == []


def test_two_refactors_cannot_run_at_once(contents: Contents, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LOCK_SECONDS", 0.05)
    (state / "refactors").mkdir()
    with filelock.FileLock(state / "refactors" / "lock"), pytest.raises(RequestError, match="another refactor"):
        replace_all(contents)
    assert killing.state(contents) == ["old"] * 5


def test_other_users_cannot_read_the_files_of_a_refactor(
    contents: Contents, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, _, _ in contents:
        path.chmod(0o600)
    (state / "refactors").mkdir(mode=0o755)
    modes: dict[str, set[int]] = {}
    real = os.fsync

    def looking(descriptor: int) -> None:
        for path in (*leftovers(tmp_path, state), state / "refactors"):
            modes.setdefault(path.suffix or "folder", set()).add(stat.S_IMODE(path.stat().st_mode))
        real(descriptor)

    before = os.umask(0)
    try:
        monkeypatch.setattr(os, "fsync", looking)
        cut_off(contents, monkeypatch)
        recover()
    finally:
        os.umask(before)
    assert modes == {".part": {0o600}, ".journal": {0o600}, "folder": {0o700}}
    assert {stat.S_IMODE(path.stat().st_mode) for path, _, _ in contents} == {0o600}


@pytest.mark.parametrize("data", [b"", b"\x00not a journal", b"\x93\x01\x02\x03"])
def test_a_journal_that_cannot_be_read_is_set_aside(
    contents: Contents, state: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    cut_off(contents, monkeypatch)
    folder = state / "refactors"
    (folder / "0000.journal").write_bytes(data)
    said = recover()
    assert said[0].startswith(f"{folder / '0000.journal'} cannot be read (no journal of a refactor) and is now")
    assert ["put back" in line for line in said[1:]] == [True, True]
    assert (folder / "0000.unreadable").read_bytes() == data
    assert killing.state(contents) == ["old"] * 5
    assert recover() == []
    replace_all(contents)
    assert killing.state(contents) == ["new"] * 5


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no user ids")
def test_a_folder_of_another_user_is_refused(contents: Contents, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "refactors").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with pytest.raises(RequestError, match=r"cannot use .*refactors: it belongs to another user"):
        replace_all(contents)
    assert killing.state(contents) == ["old"] * 5


def test_a_file_that_cannot_be_restored_is_tried_again_and_does_not_stop_the_others(
    contents: Contents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(contents, monkeypatch)
    real = atomic.replacing

    def full(target: Path, *, private: bool = False) -> AbstractContextManager[BinaryIO]:
        if target == contents[0][0]:
            raise OSError(28, "No space left on device", str(target))
        return real(target, private=private)

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "replacing", full)
        said = recover()
    assert sorted(line.split(": ", 1)[1][:20] for line in said) == ["a refactor was cut o", "put back, because th"]
    assert killing.state(contents) == ["new", "old", "old", "old", "old"]
    assert len(recover()) == 1
    assert killing.state(contents) == ["old"] * 5


def test_temporary_files_of_a_name_with_brackets_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [(tmp_path / name, b"old", b"new") for name in ("[id].tsx", "[...all].tsx", "b.py", "c.py")]
    for path, old, _ in contents:
        path.write_bytes(old)
    real = os.replace

    def dying(source: str, target: str) -> None:
        if str(target).endswith(".tsx"):
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(journal.os, "replace", dying)
    with pytest.raises(KeyboardInterrupt):
        replace_all(contents)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("how", ["read-only", "hard links"])
def test_a_plan_does_not_replace_a_file_that_must_not_be(tmp_path: Path, how: str) -> None:
    files = [tmp_path / "a.py", tmp_path / "b.py"]
    for file in files:
        file.write_bytes(b"x = 1\r\n")
    edits = (PlannedEdit(4, 5, "2", "one"), PlannedEdit(6, 6, "", "two", "failed", "nothing fits"))
    made = Plan("t", tuple(FileEdits(str(file), journal.sha256(file.read_bytes()), None, edits) for file in files))
    files[1].chmod(0o444) if how == "read-only" else os.link(files[1], files[1].with_name("other.py"))
    with pytest.raises(RequestError, match=rf"b\.py .*{how}.*; nothing was written"):
        apply(made)
    assert files[0].read_bytes() == files[1].read_bytes() == b"x = 1\r\n"
