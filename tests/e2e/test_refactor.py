import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Lacuna = Callable[..., subprocess.CompletedProcess[str]]

# Kills its own process just before it renames the third new file of the refactor to its final name.
KILLED = """
import os, signal, sys
seen = 0
def hook(event, arguments):
    global seen
    if event == "os.rename" and str(arguments[1]).endswith(".py"):
        seen += 1
        if seen == 3:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
from lacuna_server.__main__ import LACUNA
LACUNA.run(sys.argv[1:])
"""
GIT = ("git", "-c", "user.name=test", "-c", "user.email=test@localhost")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run([*GIT, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of the standard library in a new git repository."""
    folder = tmp_path / "work"
    source = Path(json.__file__).parent
    shutil.copytree(source, folder / "json", ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@pytest.fixture
def lacuna(package: Path, tmp_path: Path) -> Lacuna:
    # One thread: with two, a busy machine makes the test many times slower.
    # The command would import this very package from its folder, and leave bytecode there.
    own = {"LACUNA_STATE": str(tmp_path / "state"), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    environment = os.environ | own

    def run(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *(("-c", code) if code else ("-m", "lacuna_server")), "refactor", *arguments]
        return subprocess.run(
            command, cwd=package, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    return run


def test_a_package_is_refactored_by_the_real_model(package: Path, lacuna: Lacuna) -> None:
    pattern, template = "raise $E($$$ARGS)", "raise $E($$$ARGS) from <<fill:line:tokens=4:regex=None|error>>"
    names = ("json/__init__.py", "json/scanner.py", "json/tool.py")
    ended = lacuna("--lang", "python", pattern, template, *names, "--apply", "--json")
    assert ended.returncode == 0, ended.stderr
    plan = json.loads(ended.stdout)["plan"]
    files, (left,) = plan["files"], plan["left_out"]
    edits = [edit for file in files for edit in file["edits"]]
    assert len(edits) == 4
    assert "does not name its 'from'" in left  # one raise statement already has a 'from'
    assert {edit["new_text"].rsplit(" from ", 1)[1] for edit in edits} <= {"None", "error"}
    assert [edit["status"] for edit in edits] == ["ready"] * 4
    made = {file["path"]: file["edits"] for file in files}
    for file in package.rglob("*.py"):
        compile(file.read_bytes(), str(file), "exec")
    for file in files:
        expected = original = git(package, "show", f"HEAD:{file['path']}")
        for edit in reversed(made[file["path"]]):
            expected = expected[: edit["start"]] + edit["new_text"] + expected[edit["end"] :]
        assert original.isascii()
        assert (package / file["path"]).read_text() == expected
    assert git(package, "diff", "--name-only").split() == sorted(path for path in made if made[path])


def test_a_refactor_that_is_killed_between_two_files_is_reverted(package: Path, lacuna: Lacuna) -> None:
    arguments = ("--lang", "python", "import $M", "import $M, sys", "json")
    killed = lacuna(*arguments, "--apply", code=KILLED)
    assert killed.returncode == -signal.SIGKILL
    assert len(git(package, "diff", "--name-only").split()) == 2
    ended = lacuna(*arguments)
    assert ended.stderr.count(": put back, because the refactor that changed it was cut off") == 2
    assert git(package, "status", "--porcelain") == ""
    assert lacuna(*arguments, "--apply").returncode == 0
    assert len(git(package, "diff", "--name-only").split()) > 2
