"""The log file of the language server."""

import contextlib
import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from lacuna_model.hub.atomic import PRIVATE
from lacuna_server.client.starting import log_path as log_path_of

TURN_OVER_BYTES = 1_000_000


def log_path() -> Path:
    """Returns the path of the log file."""
    return log_path_of("lsp")


class PrivateFile(RotatingFileHandler):
    """A log that only this user can read, also after it was turned over."""

    def _open(self) -> TextIOWrapper:
        def opened(name: str, flags: int) -> int:
            return os.open(name, flags, PRIVATE)

        return open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=opened)


def configure(level: str) -> None:
    """Logs records of ``level`` and above; records that contain users' code only at DEBUG."""
    path = log_path()
    form = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    logging.raiseExceptions = False  # an error while logging is ignored, such as a full disk
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    handler = PrivateFile(path, maxBytes=TURN_OVER_BYTES, backupCount=1, encoding="utf-8", delay=True)
    logging.basicConfig(handlers=[handler], level=level, format=form)
    if level != "DEBUG":
        for name in ("pygls", "websockets"):
            logging.getLogger(name).setLevel(logging.WARNING)
