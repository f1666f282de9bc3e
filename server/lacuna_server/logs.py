"""The service's log: one line an event on stderr, in logfmt; what users type is no part of it.

Nothing depends on it: a line that cannot be written is dropped, and nobody waits until one is written.
"""

import contextlib
import os
import queue
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import structlog

from lacuna_server import streams

MAX_WAITING = 1000
LAST_LINES_S = 1.0  # that the end of the service waits for
TURN_OVER_BYTES = 1_000_000


class Log:
    """Lines for a file, which a thread of its own writes: a disk may be full, a terminal or pipe may stand still."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.Queue[bytes | None] = queue.Queue(MAX_WAITING)
        self._num_lost = 0
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Have a line written, or drop it where too many wait."""
        try:
            self._lines.put_nowait(line.encode(errors="backslashreplace"))
        except queue.Full:
            self._num_lost += 1

    def flush(self) -> None:
        """Nobody waits."""

    def close(self) -> None:
        """Write what is left, as far as that goes in a moment."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=LAST_LINES_S)
            self._thread.join(LAST_LINES_S)

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            lost = f"level=warning event=log_lines_lost number={self._num_lost}\n".encode() if self._num_lost else b""
            try:
                self._write(lost + line)
            except OSError:
                self._num_lost += 1
            else:
                self._num_lost = 0

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]


@contextlib.contextmanager
def writing(file: Path | None) -> Iterator[None]:
    """Log every event with its time and level, to a file or to stderr, until the block ends.

    Raises OSError where the file cannot be opened.
    """
    if file is not None:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (sys.stdout, sys.stderr):  # the model process, which inherits them, prints there, too
            os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
    streams.forgive()
    log = Log(sys.stderr.fileno())
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=log),  # type: ignore[arg-type]  # all it needs of a file
        cache_logger_on_first_use=True,
    )
    try:
        yield
    finally:
        log.close()


def turn_over(file: Path) -> None:
    """Where a log is long, keep a copy of it and go on with an empty file, which all who write to it have open."""
    with contextlib.suppress(OSError):
        if file.stat().st_size < TURN_OVER_BYTES:
            return
        with contextlib.suppress(OSError):  # without room for a copy there is none, but room again
            shutil.copyfile(file, file.with_suffix(".old.log"))
        os.truncate(file, 0)
