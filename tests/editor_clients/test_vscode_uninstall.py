"""What runs when the extension is removed, without VS Code and without a Python of the extension's."""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lsp.service import Daemon, wait_for

from .vscode import EXTENSION, NODE

KEPT = ("cache/models/m/weights", "cache/prepared/form", "state/log/service.log", "storage/venv/bin/none")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with what a setup leaves, and the extension's folder ``dist``."""
    if not (NODE.exists() and EXTENSION.exists()):
        missing = "make test installs Node and packages the extension"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    for name in (*KEPT, "cache/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("kept")
    (tmp_path / "bin").mkdir()
    (tmp_path / "dist").mkdir()
    with zipfile.ZipFile(EXTENSION) as vsix:
        (tmp_path / "dist/uninstall.js").write_bytes(vsix.read("extension/dist/uninstall.js"))
    return tmp_path


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory(prefix="lacuna-") as folder:  # short, for the path of its socket
        one = Daemon(Path(folder))
        one.start()
        yield one
        one.kill()


def has_ended(daemon: Daemon) -> bool:
    assert daemon.process is not None
    return daemon.process.wait(60) == 0


def remove(home: Path, announced: Path) -> None:
    """Run the hook as VS Code does, and wait until its copy has ended."""
    keeps = [str(home / name) for name in ("cache/models", "cache/prepared", "cache/speed", "state/log")]
    kept = {"storage": str(home / "storage"), "keeps": keeps, "announced": str(announced)}
    (home / "dist/kept.json").write_text(json.dumps(kept))
    (home / "tmp").mkdir()
    environment = {"HOME": str(home), "PATH": str(home / "bin"), "TMPDIR": str(home / "tmp")}
    command = [NODE, home / "dist/uninstall.js", "--type=extension-post-uninstall"]
    subprocess.run(command, env=environment, check=True, timeout=60)
    wait_for(lambda: not any((home / "tmp").iterdir()))


def test_all_is_removed_and_the_service_ends(home: Path, daemon: Daemon) -> None:
    remove(home, daemon.folder / "run/lacuna/service.json")
    assert has_ended(daemon)
    left = {str(one.relative_to(home)) for one in home.rglob("*")}
    assert left == {"bin", "cache", "cache/notes.txt", "dist", "dist/kept.json", "dist/uninstall.js", "tmp"}


def test_what_another_installation_uses_stays(home: Path, daemon: Daemon) -> None:
    (home / "bin/lacuna-lsp").write_text("#!/bin/sh\n")
    (home / "bin/lacuna-lsp").chmod(0o755)
    remove(home, daemon.folder / "run/lacuna/service.json")
    assert has_ended(daemon)
    assert not (home / "storage").exists()
    assert all((home / name).exists() for name in KEPT if not name.startswith("storage"))


def test_a_process_that_has_the_number_of_a_killed_service_goes_on(home: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        announced = home / "service.json"
        announced.write_text(json.dumps({"pid": other.pid, "socket": str(home / "service.sock")}))
        remove(home, announced)
        assert (home / "dist/uninstall.js").exists()  # a copy did the work: VS Code ends the hook after seconds
        assert other.poll() is None
        assert not (home / "cache/models").exists()
        other.communicate(b"\n")
    assert other.returncode == 0
