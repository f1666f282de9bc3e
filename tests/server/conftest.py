import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lacuna_server.client import lifecycle
from lacuna_server.client.starting import Address

TIMEOUT_S = 60
Serve = Callable[..., Address]


@pytest.fixture
def scripted_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let worker processes import ``scripted_engine``, and return a folder for the test's files."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "scripted"))
    return tmp_path


@pytest.fixture
def serve(scripted_engine: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a service in a process, with a factory of the scripted engine. No weights are on the machine."""
    (scripted_engine / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(scripted_engine / "runtime"))
    monkeypatch.setenv("XDG_STATE_HOME", str(scripted_engine / "state"))
    monkeypatch.setenv("LACUNA_CACHE", str(scripted_engine / "cache"))
    with ExitStack() as stack:

        def start(factory: str, **settings: object) -> Address:
            lines = [f"{name} = {value}\n" for name, value in settings.items()]
            config = scripted_engine / "service.toml"  # as lacuna.toml it would be the settings of the test's project
            config.write_text("".join((f'engine = "scripted_engine:{factory}"\nport = 0\n', *lines)))
            command = [sys.executable, "-m", "lacuna_server", "serve", "--config", str(config)]
            process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL))
            stack.callback(process.terminate)
            until(lambda: lifecycle.find() is not None)
            running = lifecycle.find()
            assert running is not None
            return Address(running.url, running.token)

        yield start


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
