"""The service's log: one line per event, in logfmt. It contains no text that users type."""

import contextlib
import os
import shutil
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import structlog

from lacuna_model.hub.atomic import replacing
from lacuna_server.worker import streams

TURN_OVER_BYTES = 1_000_000


def configure(file: Path | None = None) -> None:
    """Log every event with time and level, to a file or to stderr. Raises OSError where the file cannot be opened."""
    if file is not None:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (sys.stdout, sys.stderr):  # the model process inherits them and prints there too
            os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
    streams.unhurried()
    to_stderr()


def to_stderr() -> None:
    """Log every event with time and level to stderr, with what is bound to the present request."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _printable,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def _printable(logger: object, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Escape control characters in what an event says: clients choose some of it, and terminals obey them."""
    return {
        name: "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in value)
        if isinstance(value, str) and not value.isprintable()
        else value
        for name, value in event.items()
    }


def turn_over(file: Path) -> None:
    """If a log is long, copy it to ``.old.log`` and truncate it in place, because several processes have it open."""
    with contextlib.suppress(OSError):
        if file.stat().st_size < TURN_OVER_BYTES:
            return
        # On a full disk there is no copy, but truncating makes room.
        with (
            contextlib.suppress(OSError),
            file.open("rb") as log,
            replacing(file.with_suffix(".old.log"), private=True) as old,
        ):
            shutil.copyfileobj(log, old)
        os.truncate(file, 0)
