"""What makes the service safe to reach: private files, tokens, TLS, rates."""

import ipaddress
import stat
import time
import tomllib
from pathlib import Path
from typing import Any

from lacuna_server.wire.config import ConfigError, ServerConfig
from lacuna_server.wire.protocol import ServiceError


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


def check_config(config: ServerConfig) -> None:
    """Check a configuration.

    Raises ConfigError where other machines could use the service without a token, or where TLS cannot be set up.
    """
    if not is_loopback(config.host) and not config.token:
        raise ConfigError(f"listening on {config.host} needs a token, because others can reach it: use --token-file")
    check_tls(config)


def check_tls(config: ServerConfig) -> None:
    """Check the TLS files. Raises ConfigError where they cannot be used."""
    if bool(config.cert) != bool(config.key):
        raise ConfigError("TLS needs both: --cert and --key")
    if config.cert:
        import ssl

        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(config.cert, config.key)
        except OSError as error:  # the base class of SSLError
            reason = error.strerror or error
            raise ConfigError(f"TLS with {config.cert} and {config.key} cannot be had: {reason}") from None


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host: a loopback address or ``localhost``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class RateLimit:
    """A token bucket: admits ``per_second`` messages on average and as many in a burst."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._left = float(per_second)
        self._then = time.monotonic()

    def check(self) -> None:
        """Count one message. Raises ServiceError ``rate_limited`` where there are too many."""
        now = time.monotonic()
        self._left = min(self._per_second, self._left + (now - self._then) * self._per_second)
        self._then = now
        if self._left < 1:
            wait_ms = max(1, round((1 - self._left) / self._per_second * 1e3))
            raise ServiceError("rate_limited", f"more than {self._per_second} messages a second", wait_ms)
        self._left -= 1
