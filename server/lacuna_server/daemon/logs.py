"""The service's log: one line an event, in logfmt; what users type is no part of it."""

import contextlib
import os
import shutil
import sys
from pathlib import Path

import structlog

from lacuna_server.worker import streams

TURN_OVER_BYTES = 1_000_000


def configure(file: Path | None = None) -> None:
    """Write every event with its time and level, to a file or to stderr. Raises OSError where that cannot be opened."""
    if file is not None:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (sys.stdout, sys.stderr):  # the model process, which inherits them, prints there, too
            os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
    streams.unhurried()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def turn_over(file: Path) -> None:
    """Where a log is long, keep a copy of it and go on with an empty file, which all who write to it have open."""
    with contextlib.suppress(OSError):
        if file.stat().st_size < TURN_OVER_BYTES:
            return
        with contextlib.suppress(OSError):  # without room for a copy there is none, but room again
            shutil.copyfile(file, file.with_suffix(".old.log"))
        os.truncate(file, 0)
