import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.server.cluster.live_cluster import LiveCluster, live_cluster
from tests.server.live_service import live
from tests.server.scripted.scripted_engine import COUNT_VARIABLE

from lacuna_server.client import lifecycle
from lacuna_server.client.starting import Address

TIMEOUT_S = 60
Serve = Callable[..., Address]


class Front(NamedTuple):
    """One of the services that speak the same protocol: its address, and the file in which its engine counts steps."""

    address: str
    count: Path


@pytest.fixture
def scripted_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let worker processes import ``scripted_engine``, and return a folder for the test's files."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "scripted"))
    return tmp_path


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a service in a process, with a factory of the scripted engine. No weights are on the machine.

    ``open_files`` is the limit of open files of its process.
    """
    with services(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Such a service, which the tests of a module share."""
    with services(tmp_path_factory.mktemp("service")) as start:
        yield start("load")


@contextmanager
def services(folder: Path) -> Iterator[Serve]:
    """Services whose files are in a folder, and which end with the block."""
    (folder / "runtime").mkdir(mode=0o700)
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent / "scripted"))
        patch.setenv("XDG_RUNTIME_DIR", str(folder / "runtime"))
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setenv("LACUNA_CACHE", str(folder / "cache"))

        def start(factory: str, *, open_files: int = 0, **settings: object) -> Address:
            lines = [f"{name} = {value}\n" for name, value in settings.items()]
            config = folder / "service.toml"  # as lacuna.toml it would be the settings of the test's project
            config.write_text("".join((f'engine = "scripted_engine:{factory}"\nport = 0\n', *lines)))
            command = [sys.executable, "-m", "lacuna_server", "serve", "--config", str(config)]
            if open_files:
                command = ["/bin/sh", "-c", f'ulimit -n {open_files} && exec "$@"', "sh", *command]
            process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL))
            stack.callback(process.terminate)
            until(lambda: lifecycle.find() is not None)
            running = lifecycle.find()
            assert running is not None
            return running

        yield start


@pytest.fixture(scope="module")
def cluster() -> Iterator[LiveCluster]:
    """A cluster with one ingress and two engine replicas, for the tests of a module.

    It ends with them: to the end of a long suite it would use more CPU time idling than another start takes.
    """
    with ExitStack() as stack:
        for last in (False, False, True):  # on busy cores Ray gives up before it has started
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lacuna-", dir="/tmp"))  # a short path
            try:
                running = stack.enter_context(live_cluster(Path(folder), ingresses=1))
                break
            except AssertionError:
                if last:
                    raise
        yield running


@pytest.fixture
async def machine(scripted_engine: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Front]:
    """The service on one machine."""
    (count := scripted_engine / "count").touch()
    monkeypatch.setenv(COUNT_VARIABLE, str(count))
    async with live() as (_, address):
        yield Front(address, count)


@pytest.fixture
def front(machine: Front) -> Front:
    """The service that speaks the protocol; ``test_live.py`` of a cluster runs the same tests with a cluster."""
    return machine


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
