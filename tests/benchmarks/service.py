"""The service that a measurement has for itself, and a core that another program keeps busy."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from lacuna_model.hub import models
from lacuna_server.client import lifecycle
from lacuna_server.client.client import Address, find_or_start
from lacuna_server.wire.layers import FILE_NAME


@contextmanager
def runtime_folder(**settings: str) -> Iterator[None]:
    """Gives this process a runtime folder of its own, and ``settings`` in place of the user's ``lacuna.toml``.

    The user's own service may run at the same time.
    """
    with tempfile.TemporaryDirectory(prefix="lacuna-bench-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = os.environ["XDG_CONFIG_HOME"] = folder
        file = Path(folder) / "lacuna" / FILE_NAME
        file.parent.mkdir()
        file.write_text("".join(f'{name} = "{value}"\n' for name, value in settings.items()))
        yield


@asynccontextmanager
async def service(model: str, *arguments: str) -> AsyncIterator[Address]:
    """A service with a model, which has ended when the context ends."""
    try:
        yield await find_or_start("--port", "0", "--model", models.absolute(model), *arguments)
    finally:
        if (running := lifecycle.find()) is not None:
            os.kill(running.pid, signal.SIGTERM)
            while lifecycle.find() is not None:
                await asyncio.sleep(0.05)


@contextmanager
def busy_core() -> Iterator[None]:
    """Another process keeps one core busy, as a build or a browser would."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
