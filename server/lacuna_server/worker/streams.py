"""What a process prints beside its work: nothing depends on it, so nothing waits for it or fails with it."""

import atexit
import contextlib
import io
import os
import queue
import sys
import threading

MAX_WAITING = 1000
LAST_LINES_S = 1.0  # that the end of the process waits for


class Unhurried(io.RawIOBase):
    """A file that a thread of its own writes to: a disk may be full, a terminal or pipe may stand still.

    What cannot be written, or waits behind ``MAX_WAITING`` other writes, is dropped and counted.
    """

    def __init__(self, descriptor: int) -> None:
        self.num_lost = 0
        self._descriptor = descriptor
        self._waiting: queue.Queue[bytes | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: object) -> int:
        """Have bytes written."""
        taken = bytes(data)  # type: ignore[call-overload]  # a buffer, a type that has no name in Python 3.11
        try:
            self._waiting.put_nowait(taken)
        except queue.Full:
            self.num_lost += 1
        return len(taken)

    def finish(self) -> None:
        """Write what is left, as far as that goes in a moment."""
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=LAST_LINES_S)
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
    """Let everything that this process prints from here on go to its stderr without haste."""
    raw = Unhurried(sys.stderr.fileno())
    sys.stdout = sys.stderr = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)
    atexit.register(raw.finish)
