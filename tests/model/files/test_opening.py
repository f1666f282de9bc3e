"""Only regular files inside a workspace are read, and every read ends, whatever the workspace holds."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lacuna_model.files.ignore import IgnoreRules
from lacuna_model.files.opening import read_within
from lacuna_model.files.scanning import WorkspaceSettings, read_source, scan

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


def test_the_root_may_be_named_by_a_way_that_goes_up(root: Path) -> None:
    way = root / "inner" / ".."
    files = [file.path for file in scan(way, WorkspaceSettings())]
    assert root / "inner" / "a.py" in files
    assert all(read_within(way, file, LIMIT) is not None for file in files)


@pytest.mark.parametrize(
    "place",
    [
        lambda root: (root / "l.py").symlink_to(root.parent / "outside" / "secret.py") or "l.py",
        lambda root: (root / "l").symlink_to(root.parent / "outside") or "l/secret.py",
        lambda root: (root / "l.py").symlink_to("inner/a.py") or "l.py",
        lambda root: (root / "z.py").symlink_to("/dev/zero") or "z.py",
        lambda root: os.mkfifo(root / "pipe.py") or "pipe.py",
        lambda root: (root / "folder.py").mkdir() or "folder.py",
        lambda root: ".",
        lambda root: "../outside/secret.py",
        lambda root: "inner/../../outside/secret.py",
    ],
    ids=["link", "linked folder", "link inside", "device", "pipe", "folder", "the root", "above", "above by a way"],
)
def test_links_devices_pipes_folders_and_outside_files_are_not_read(root: Path, place: Callable[[Path], str]) -> None:
    name = place(root)
    assert read_within(root, root / name, LIMIT) is None
    assert read_source(root, root / name, LIMIT) is None


KINDS = st.sampled_from(["file", "link", "outward", "pipe", "folder", "loop", "closed", "zero"])


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds=st.lists(KINDS, min_size=1, max_size=8), deep=st.booleans())
def test_any_workspace_is_walked_and_read_to_its_end(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], deep: bool
) -> None:
    base = tmp_path_factory.mktemp("any")
    (base / "secret.py").write_text(SECRET)
    root = base / "root"
    folder = root / "inner" if deep else root
    folder.mkdir(parents=True)
    for number, kind in enumerate(kinds):
        path = folder / f"f{number}.py"
        match kind:
            case "file" | "closed":
                path.write_text(f"x = {number}\n")
                path.chmod(0 if kind == "closed" else 0o600)
            case "link":
                path.symlink_to("f0.py")
            case "outward":
                path.symlink_to(base / "secret.py")
            case "pipe":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "loop":
                path.symlink_to(path)
            case "zero":
                path.symlink_to("/dev/zero")
    plain = {f"f{number}.py" for number, kind in enumerate(kinds) if kind in ("file", "closed")}
    assert {file.path.name for file in scan(root, WorkspaceSettings())} <= plain
    for number in range(len(kinds)):
        text = read_source(root, folder / f"f{number}.py", LIMIT)
        assert text is None or (f"f{number}.py" in plain and text == f"x = {number}\n")


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


@pytest.mark.parametrize("part", ["*a", "*a?", "**/a/", "*[a-z]", "a*"])
def test_no_ignore_pattern_takes_long(tmp_path: Path, part: str) -> None:
    (tmp_path / ".gitignore").write_text(part * 60 + "1\n")
    rules = IgnoreRules.of(tmp_path)
    done = threading.Event()

    def ask() -> None:
        for path in ("a" * 250, "/".join("a" * 120), "ab" * 120):
            rules.ignores(f"{tmp_path.as_posix()}/{path}")
        done.set()

    threading.Thread(target=ask, daemon=True).start()
    assert done.wait(30)
