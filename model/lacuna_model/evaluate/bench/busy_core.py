"""Another program that uses a core, while something is measured."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_core() -> Iterator[None]:
    """Keeps one core busy with another process, as a build or a browser would."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
