"""The log of the language server."""

import logging
from pathlib import Path

from platformdirs import user_log_path


def log_path() -> Path:
    """The file that the log is written to."""
    return user_log_path("lacuna", appauthor=False) / "lacuna-lsp.log"


def configure(level: str) -> None:
    """Write records of ``level`` and above to the log; those with users' code in them only where it is DEBUG."""
    path = log_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    form = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(filename=path, level=level, format=form, encoding="utf-8")
    if level != "DEBUG":
        for name in ("pygls", "websockets"):
            logging.getLogger(name).setLevel(logging.WARNING)
