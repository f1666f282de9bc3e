"""Files of settings and tokens: read whole, with one line for whatever is wrong with them."""

import stat
import tomllib
from pathlib import Path
from typing import Any

from lacuna_server.wire.config import ConfigError


def toml(file: Path) -> dict[str, Any]:
    """Return the tables of a TOML file. Raises ConfigError with one line where it cannot be read."""
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except ValueError as error:  # no TOML, no UTF-8, or a number of more digits than Python reads
        raise ConfigError(f"{file}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{file}: it is nested too deeply") from None
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None


def check_private(file: Path) -> None:
    """Raise ConfigError where its group or others can read a file or write to it, or where there is none."""
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None
    if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH):
        raise ConfigError(f"{file}: others can read it or write to it; run: chmod go-rwx {file}")


def token(file: Path) -> str:
    """Return the token in a file that others cannot read, without the spaces around it.

    Raises ConfigError where they can, and where the token is not printable ASCII.
    """
    check_private(file)
    try:
        found = file.read_text("utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        found = ""
    if not found or not found.isascii() or not found.isprintable():
        raise ConfigError(f"{file}: the token must be one line of printable ASCII")
    return found
