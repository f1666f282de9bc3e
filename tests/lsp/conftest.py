import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from lacuna_model.hub.atomic import ANSWERS

from .editor import Editor, connected
from .service import Daemon


@pytest.fixture(scope="session")
def shared_daemon() -> Iterator[Daemon]:
    yield from _daemon()


@pytest.fixture
def daemon(shared_daemon: Daemon) -> Daemon:
    """The shared service, with a default script, an empty log, and no answers to earlier suggestions."""
    shared_daemon.plan()
    (shared_daemon.folder / "log.jsonl").unlink(missing_ok=True)
    (Path(shared_daemon.environment["XDG_STATE_HOME"]) / "lacuna" / ANSWERS).unlink(missing_ok=True)
    return shared_daemon


@pytest.fixture
def own_daemon() -> Iterator[Daemon]:
    """A separate service, which the test may stop."""
    yield from _daemon()


def _daemon(**settings: str) -> Iterator[Daemon]:
    # A short path, because the length of a socket's or a lock's path is limited.
    folder = Path(tempfile.mkdtemp(prefix="lsp"))
    daemon = Daemon(folder)
    try:
        daemon.start(**settings)
        yield daemon
    finally:
        daemon.kill()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def language_server(shared_daemon: Daemon) -> Iterator[Path]:
    """The socket of a ``lacuna-lsp`` that many tests share. It creates a server object for every connection."""
    socket = shared_daemon.folder / "lsp.sock"
    command = [sys.executable, "-I", "-m", "lacuna_lsp", "--unix", str(socket), "--log-level", "DEBUG"]
    process = subprocess.Popen(command, env=shared_daemon.environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline() == f"listening on unix:{socket}\n"
    yield socket
    process.terminate()
    process.wait()
    process.stderr.close()


@pytest_asyncio.fixture
async def editor(daemon: Daemon, language_server: Path) -> AsyncIterator[Editor]:
    """An editor connected to the language server, not yet initialized."""
    async with connected(language_server) as editor:
        yield editor
