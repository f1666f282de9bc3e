import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import filelock
import pytest

from lacuna_server.client import lifecycle
from lacuna_server.client.lifecycle import LifecycleError, Running

HERE = Running("http://127.0.0.1:1", "secret", pid=os.getpid())
HOLDER = """
import os, time
from lacuna_server.client import lifecycle
from lacuna_server.client.lifecycle import Running
with lifecycle.only_service():
    lifecycle.announce(Running("http://127.0.0.1:1", pid=os.getpid()))
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The runtime folder of this test."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "lacuna"


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """Another process that announces itself as the service."""
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_only_its_user_can_read_the_file_and_it_is_removed_with_the_service(folder: Path) -> None:
    assert lifecycle.find() is None
    with lifecycle.only_service():
        assert lifecycle.find() is None  # it is still starting, and has not announced its address
        lifecycle.announce(HERE)
        assert stat.S_IMODE((folder / lifecycle.FILE_NAME).stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert lifecycle.find() == HERE
    assert lifecycle.find() is None
    assert not (folder / lifecycle.FILE_NAME).exists()


def test_the_file_of_a_killed_service_is_noticed(holder: subprocess.Popen[str], folder: Path) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (folder / lifecycle.FILE_NAME).exists()
    with ThreadPoolExecutor(8) as threads:  # lookups do not mistake each other for the service
        found = list(threads.map(lambda _: [lifecycle.find() for _ in range(200)], range(8)))
    assert [one for those in found for one in those if one is not None] == []
    with filelock.FileLock(folder / lifecycle.LOCK_NAME):  # the next service, before it has removed the file
        assert (folder / lifecycle.FILE_NAME).exists()
        assert lifecycle.find() is None


def test_a_folder_that_other_users_can_enter_is_made_private(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    with lifecycle.only_service():
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner of a folder")
def test_a_folder_of_another_user_is_not_used(folder: Path) -> None:
    folder.mkdir(mode=0o777)
    os.chown(folder, 12345, 12345)
    with (
        pytest.raises(LifecycleError, match="cannot use"),
        lifecycle.only_service(),
    ):
        pass
    assert lifecycle.find() is None


@pytest.mark.skipif(Path(f"/run/user/{os.geteuid()}").exists(), reason="the system has a runtime folder for this user")
@pytest.mark.parametrize("taken", [True, False])
def test_without_a_runtime_folder_none_is_used_that_others_could_make_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    if taken:
        (shared / f"runtime-{os.geteuid()}").symlink_to(tmp_path)
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    with lifecycle.only_service():
        lifecycle.announce(HERE)
        assert lifecycle.find() == HERE
    run = tmp_path / "state" / "lacuna" / "run"
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    assert not (shared / f"runtime-{os.geteuid()}" / "lacuna").exists()


def test_a_link_to_a_folder_is_not_used(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LifecycleError, match="no folder of this user's own"), lifecycle.only_service():
        pass


@pytest.mark.parametrize("content", [b"", b"{", b'{"pid": "x"}'])
def test_a_damaged_file_counts_as_no_service(folder: Path, content: bytes) -> None:
    with lifecycle.only_service():
        lifecycle.announce(HERE)
        (folder / lifecycle.FILE_NAME).write_bytes(content)
        assert lifecycle.find() is None
