"""From an empty home folder to a suggestion: the extension installs its own server, in a real VS Code."""

import json
import os
import signal
import site
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.e2e.test_lsp import without_service
from tests.editor_clients.small_wheel import make_path_wheel
from tests.lsp.editor import until

from .vscode import ATTEMPT_MS, PATIENCE_MS, VSCode, change, insist, processes, running, serving

PROXY = "http://127.0.0.1:9"
ASKS = "programs (0.3 GB to fetch, more with CUDA; 1 GB on disk) and a model (0.5 to 1.6 GB to fetch"
# Takes the place of Python: answers the question for its version, and then waits until its stdin is closed.
WAITS = """#!/bin/sh
case "$*" in *install.py*)
  echo "{\\"stage\\": \\"waiting here for $HTTPS_PROXY\\", \\"done\\": 0, \\"total\\": 0}"
  exec /bin/cat >/dev/null;;
esac
exec PYTHON "$@"
"""


@pytest.fixture(scope="module")
def prepared(coder_path: Path, cache_folder: Path) -> Path:
    """A cache with compiled kernels: a newcomer has no compiler, and the extension for all systems no kernels."""
    load = f"from lacuna_model.engine import Engine; Engine.load({coder_path.parent.name!r})"
    subprocess.run([sys.executable, "-c", load], check=True, timeout=300)
    return cache_folder


@pytest.fixture
def newcomer(tmp_path: Path, prepared: Path) -> Iterator[Mapping[str, str]]:
    """The environment of a user who has Python and the tests' model, and nothing else.

    pip takes Lacuna from the extension; all that Lacuna needs is on the path of the tests already.
    """
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
    (tmp_path / "index").mkdir()
    make_path_wheel(tmp_path / "index", *site.getsitepackages())
    (tmp_path / "requirements.txt").write_text("tests-path\n")
    cache = tmp_path / "cache"
    for folder in ("models", "downloads", "kernels", "prepared", "speed"):
        (cache / folder).mkdir(parents=True)
        for file in (prepared / folder).glob("*"):
            (cache / folder / file.name).symlink_to(file)
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_FIND_LINKS": str(tmp_path / "index")}
    with without_service() as environment:
        yield {
            **environment,
            **pip,
            "PIP_REQUIREMENT": str(tmp_path / "requirements.txt"),
            "PATH": str(tmp_path / "bin"),
            "HOME": str(tmp_path),
            "LACUNA_CACHE": str(cache),
        }


@asynccontextmanager
async def window(folder: Path, environment: Mapping[str, str]) -> AsyncIterator[VSCode]:
    """A VS Code without a setting for the server, in the home folder of the environment."""
    user = folder / "data/User/settings.json"  # the other ones are this machine's, where a proxy has no place
    user.parent.mkdir(parents=True, exist_ok=True)
    user.write_text(json.dumps({"http.proxy": PROXY}))
    async with running(folder, environment, settings={"lacuna.command": None}) as code:
        yield code


async def install(code: VSCode) -> None:
    await code.boxes.filter(has_text=ASKS).get_by_role("button", name="Install").click()


def waiting(home: Path) -> list[str]:
    """The installers in this home folder that wait for the end of their stdin."""
    home_is = f"HOME={home}\0".encode()
    return [pid for pid, command, variables in processes() if command == b"/bin/cat\0" and home_is in variables]


async def test_from_an_empty_home_to_a_suggestion_and_back(tmp_path: Path, newcomer: Mapping[str, str]) -> None:
    """Past a missing Python, a kill, a cancelled set-up and one that is not wanted."""
    python, storage = tmp_path / "bin" / "python3", tmp_path / "data/User/globalStorage/lacuna.lacuna"
    real = os.readlink(python)
    python.unlink()
    async with window(tmp_path, newcomer) as code:
        await install(code)
        await code.shows_message("Lacuna: setup: neither Python 3.11 or newer nor uv is on the path")
        await code.status("not set up")
        python.write_text(WAITS.replace("PYTHON", real))
        python.chmod(0o755)
        await code.run("Lacuna: Set Up")
        await install(code)
        await expect(code.boxes.filter(has_text=f"waiting here for {PROXY}")).to_have_count(1)
        assert len(waiting(tmp_path)) == 1
        os.killpg(code.pid, signal.SIGKILL)
    await until(lambda: not waiting(tmp_path))
    async with window(tmp_path, newcomer) as code:
        await is_cancelled_and_refused(code)
        await until(lambda: not waiting(tmp_path))
        python.unlink()
        python.symlink_to(real)
        await code.run("Lacuna: Set Up")
        await install(code)
        await until(lambda: (storage / "done").exists(), 4 * PATIENCE_MS / 1000)
        await code.status("ready")
        assert not (storage / "downloads").exists()
        await suggests(code)
        await code.page.reload()
        await code.status("ready")
        await expect(code.boxes).to_have_count(0)
    change(tmp_path, newcomer, "--uninstall-extension", "lacuna.lacuna")
    async with serving(tmp_path, newcomer) as (url, _):
        urllib.request.urlopen(url).close()  # it begins with the first window
        await until(lambda: not storage.exists(), 3 * PATIENCE_MS / 1000)
        await until(lambda: not (tmp_path / "cache").exists(), 3 * PATIENCE_MS / 1000)


async def is_cancelled_and_refused(code: VSCode) -> None:
    """A set-up that was killed goes on without a question, is cancelled, and then refused for good."""
    box = code.boxes.filter(has_text="waiting here")
    await expect(box).to_have_count(1)
    await code.status("setting up")
    await code.run("Lacuna: Status and Actions")
    await expect(code.choices.filter(has_text="Show output")).to_have_count(1)
    await expect(code.choices.filter(has_text="Open log")).to_have_count(0)
    await code.press("Escape")
    await expect(code.entry).to_have_count(0)
    await box.get_by_role("button", name="Cancel").click()
    await code.status("not set up")
    await expect(code.boxes).to_have_count(0)
    await code.run("Lacuna: Set Up")
    await code.boxes.filter(has_text=ASKS).get_by_role("button", name="Not Now").click()
    await expect(code.boxes).to_have_count(0)
    await code.page.reload()
    await code.status("not set up")
    await code.page.wait_for_timeout(500)  # a notification would appear in this time
    await expect(code.boxes).to_have_count(0)


async def suggests(code: VSCode) -> None:
    await code.open("area.py", "def area(width, height):\n    return ¦\n")
    await code.insert("w")

    async def attempt() -> None:
        await code.press("Alt+\\")
        await code.page.wait_for_selector(".ghost-text, [class*=ghost-text]", timeout=3 * ATTEMPT_MS)

    await insist(attempt)  # a busy machine may have no suggestion within its time limit
