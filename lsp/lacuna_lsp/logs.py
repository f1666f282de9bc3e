"""The log file of the language server."""

import contextlib
import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

from lacuna_server.client.starting import log_path as log_path_of

TURN_OVER_BYTES = 1_000_000


def log_path() -> Path:
    """Returns the path of the log file."""
    return log_path_of("lsp")


def configure(level: str) -> None:
    """Logs records of ``level`` and above; records that contain users' code only at DEBUG."""
    path = log_path()
    form = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    logging.raiseExceptions = False  # an error while logging is ignored, such as a full disk
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    handler = RotatingFileHandler(path, maxBytes=TURN_OVER_BYTES, backupCount=1, encoding="utf-8", delay=True)
    logging.basicConfig(handlers=[handler], level=level, format=form)
    if level != "DEBUG":
        for name in ("pygls", "websockets"):
            logging.getLogger(name).setLevel(logging.WARNING)
