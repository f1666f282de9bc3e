"""Lacuna in a Python that has only what Windows has: the service on loopback, the language server, the commands."""

import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.lsp.editor import launched
from tests.lsp.service import Daemon
from tests.pretended_windows import pretended

MODEL = "qwen2.5-coder-0.5b"


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="win") as made:
        yield Path(made)


@pytest.fixture
def python(folder: Path) -> Path:
    return pretended(folder)


def told(python: Path, environment: Mapping[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-I", "-m", "lacuna_server", *command], env=environment, capture_output=True, text=True, timeout=300
    )


async def test_the_service_answers_on_loopback_to_who_has_the_token_and_ends(folder: Path, python: Path) -> None:
    daemon = Daemon(folder)
    daemon.start(python=python)
    try:
        running = daemon.running
        assert running.socket == ""
        assert running.url.startswith("http://127.0.0.1:")
        assert running.token
        async with launched(daemon.environment, python=python) as editor:
            await editor.initialize()
            editor.open("value = ¦\n")
            assert await editor.suggest() == ["filled"]
        status = await asyncio.to_thread(told, python, daemon.environment, "status", "--json")
        assert json.loads(status.stdout)["pid"] == running.pid
        second = await asyncio.to_thread(
            told, python, daemon.environment, "serve", "--config", str(folder / "lacuna.toml")
        )
        assert second.returncode != 0
        assert f"a service of this user is running at {running.url}" in second.stderr
        stopped = await asyncio.to_thread(told, python, daemon.environment, "stop")
        assert f"stopped the service at {running.url} (process {running.pid})" in stopped.stderr
        assert daemon.process is not None
        assert await asyncio.to_thread(daemon.process.wait, 60) == 0
        assert "Traceback" not in (folder / "daemon.log").read_text()
        assert [file for file in os.listdir(folder / "run/lacuna") if not file.endswith(".lock")] == []
    finally:
        daemon.kill()


async def test_what_is_set_up_fills_in_an_editor_and_on_the_command_line(folder: Path, python: Path) -> None:
    """The set-up starts the service, as a language server does."""
    (folder / "run").mkdir(mode=0o700)
    environment = os.environ | {
        **{f"XDG_{name}": str(folder / name) for name in ("STATE_HOME", "CONFIG_HOME")},
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "LACUNA_MODEL": MODEL,
    }

    async def tell(*command: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(told, python, environment, *command)

    file = folder / "code.py"
    file.write_text("def add(first, second):\n    return <<fill>>\n")
    try:
        done = await tell("setup", "--yes", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout.splitlines()[-1])["model"] == MODEL
        async with launched(environment, python=python) as editor:
            await editor.initialize()
            editor.open("def add(first, second):\n    return first + ¦\n")
            assert any("second" in text for text in await editor.suggest(invoked=True))
        filled = await tell("fill", str(file), "--write", "--service")
        assert filled.returncode == 0, filled.stderr
        assert "first + second" in file.read_text()
        assert "ready" in (await tell("status")).stdout
    finally:
        stopped = await tell("stop")
    assert stopped.returncode == 0
    assert (await tell("status")).stderr.startswith("lacuna: no service of this user is running;")
