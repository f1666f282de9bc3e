"""Keeps a core busy during a measurement."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_core() -> Iterator[None]:
    """Runs another process that keeps one core busy, as a build or a browser would."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
