"""Keeps a core busy during a measurement."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_core() -> Iterator[int]:
    """Runs another process that keeps one core busy, as a build or a browser would; yields its id."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
