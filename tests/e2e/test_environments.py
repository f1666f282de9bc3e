"""File names, arguments and environments that are not the usual ones."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.cli.conftest import run

# A name in Latin-1, which is no UTF-8.
NAME = os.fsdecode(b"caf\xe9.py")
FOLDER = os.fsdecode(b"d\xe9j\xe0")
SOURCE = "def f(x):\n    return x\n"


def test_a_name_that_is_not_utf8_is_no_obstacle(tmp_path: Path) -> None:
    name = f"{FOLDER}/{NAME}"
    (tmp_path / FOLDER).mkdir()
    for path in (name, NAME, f"{FOLDER}/other.py", "main.py"):
        (tmp_path / path).write_text(SOURCE)
    ended = run("complete", name, "--at", "2:11", "--json", "--max-tokens", 4, "--no-service", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["status"] == "ok"
    assert answer["file"] == os.fsencode(name).decode(errors="replace")
    shown = run("context", name, "--at", "2:11", "--json", folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    json.loads(shown.stdout)
    planned = run("refactor", "--lang", "python", "return $A", "return f($A)", name, "--json", folder=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["plan"]["files"][0]["path"] == answer["file"]


# A user id without a name has no home folder unless HOME names one.
NAMELESS = ("unshare", "--user", "--map-user=54321", "--map-group=54321")


@pytest.mark.skipif(
    not shutil.which("unshare")
    or subprocess.run([*NAMELESS, "true"], check=False, capture_output=True).returncode != 0,
    reason="this system makes no user namespaces",
)
def test_a_user_without_a_name_and_a_home_is_told_what_to_set(tmp_path: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("HOME", "XDG_", "LACUNA_"))}
    for module, arguments in (("lacuna_server", ["doctor"]), ("lacuna_lsp", [])):
        command = [*NAMELESS, sys.executable, "-m", module, *arguments]
        ended = subprocess.run(command, capture_output=True, timeout=100, check=False, cwd=tmp_path, env=bare)
        assert ended.returncode == 2
        assert "there is no home folder: set HOME" in ended.stderr.decode()
        assert "Traceback" not in ended.stderr.decode()
