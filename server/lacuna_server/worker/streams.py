"""Output of a process that must never block it or make it fail, such as its log."""

import atexit
import io
import os
import queue
import sys
import threading

MAX_WAITING = 1000
LAST_LINES_S = 1.0  # the end of the process waits so long for the last lines


class Unhurried(io.BufferedIOBase):
    """A file that a separate thread writes to, because a disk may be full and a terminal or pipe may block.

    A write that fails, or that finds ``MAX_WAITING`` others waiting, is dropped and counted. A write takes no lock: a
    daemon thread that the end of the process interrupts would keep it, and the last flush would be a fatal error.
    """

    def __init__(self, descriptor: int) -> None:
        self.num_lost = 0
        self._descriptor = descriptor
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Return whether the file is a terminal."""
        return os.isatty(self._descriptor)

    def write(self, data: object) -> int:
        """Queue bytes to be written; return how many."""
        taken = bytes(data)  # type: ignore[call-overload]  # a buffer, a type that has no name in Python 3.11
        if self._waiting.qsize() < MAX_WAITING:
            self._waiting.put(taken)
        else:
            self.num_lost += 1
        return len(taken)

    def finish(self) -> None:
        """Write the remaining bytes; give up after ``LAST_LINES_S``."""
        self._waiting.put(None)
        self._thread.join(LAST_LINES_S)

    def _write_all(self) -> None:
        while (data := self._waiting.get()) is not None:
            lost = f"level=warning event=log_lines_lost number={self.num_lost}\n".encode() if self.num_lost else b""
            try:
                self._write(lost + data)
            except OSError:
                self.num_lost += 1
            else:
                self.num_lost = 0

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]


def unhurried() -> None:
    """Send everything that this process prints from now on to its stderr through an ``Unhurried`` file."""
    raw = Unhurried(sys.stderr.fileno())
    sys.stdout = sys.stderr = io.TextIOWrapper(raw, "utf-8", "backslashreplace", line_buffering=True)
    atexit.register(raw.finish)
