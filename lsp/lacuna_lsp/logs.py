"""The log of the language server."""

import contextlib
import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

from platformdirs import user_log_path

TURN_OVER_BYTES = 1_000_000


def log_path() -> Path:
    """The file that the log is written to."""
    return user_log_path("lacuna", appauthor=False) / "lacuna-lsp.log"


def configure(level: str) -> None:
    """Write records of ``level`` and above to the log; those with users' code in them only where it is DEBUG."""
    path = log_path()
    form = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    logging.raiseExceptions = False  # a full disk costs the log alone
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    handler = RotatingFileHandler(path, maxBytes=TURN_OVER_BYTES, backupCount=1, encoding="utf-8", delay=True)
    logging.basicConfig(handlers=[handler], level=level, format=form)
    if level != "DEBUG":
        for name in ("pygls", "websockets"):
            logging.getLogger(name).setLevel(logging.WARNING)
