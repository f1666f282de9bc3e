"""Only regular files inside a workspace are read, and every read ends, whatever the workspace holds."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lacuna_model.files import ignore
from lacuna_model.files.opening import read_within
from lacuna_model.files.scanning import read_source, scan

LIMIT = 1_000
SECRET = "this stands outside of the workspace"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.py").write_text(SECRET)
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "a.py").write_text("a = 1\n")
    return root


def test_the_root_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert read_within(tmp_path / "link", tmp_path / "link" / "inner" / "a.py", LIMIT) == b"a = 1\n"


@pytest.mark.parametrize(
    "place",
    [
        lambda root: (root / "l.py").symlink_to(root.parent / "outside" / "secret.py") or "l.py",
        lambda root: (root / "l").symlink_to(root.parent / "outside") or "l/secret.py",
        lambda root: (root / "l.py").symlink_to("inner/a.py") or "l.py",
        lambda root: (root / "z.py").symlink_to("/dev/zero") or "z.py",
        lambda root: (root / "loop.py").symlink_to("loop.py") or "loop.py",
        lambda root: os.mkfifo(root / "pipe.py") or "pipe.py",
        lambda root: (root / "folder.py").mkdir() or "folder.py",
        lambda root: ".",
        lambda root: "../outside/secret.py",
        lambda root: "inner/../../outside/secret.py",
    ],
    ids=[
        "link", "linked folder", "link inside", "device", "loop", "pipe", "folder", "the root", "above",
        "above by a way",
    ],
)  # fmt: skip
def test_links_devices_pipes_folders_and_outside_files_are_not_read(root: Path, place: Callable[[Path], str]) -> None:
    name = place(root)
    assert read_within(root, root / name, LIMIT) is None
    assert read_source(root, root / name, LIMIT) is None
    assert [file for file, _ in scan(root)] == [root / "inner" / "a.py"]


def test_rules_that_another_file_brings_are_noticed(root: Path) -> None:
    old, new = root / ".gitignore", root / "new"
    for file, rules in ((old, "one\n"), (new, "two\n")):
        file.write_text(rules)
        os.utime(file, ns=(0, 0))
    before = ignore.stamps(root)
    new.replace(old)
    assert ignore.stamps(root) != before


def test_a_folder_that_becomes_a_link_during_a_read_never_leads_outside(root: Path) -> None:
    """A thread swaps the folder for a link and back, as fast as it can."""
    inner, aside, stop = root / "inner", root / "aside", threading.Event()
    (root.parent / "outside" / "a.py").write_text(SECRET)

    def swap() -> None:
        while not stop.is_set():
            inner.rename(aside)
            inner.symlink_to(root.parent / "outside")
            inner.unlink()
            aside.rename(inner)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        found = {read_within(root, inner / "a.py", LIMIT) for _ in range(2_000)}
    finally:
        stop.set()
        thread.join()
    assert found <= {None, b"a = 1\n"}
