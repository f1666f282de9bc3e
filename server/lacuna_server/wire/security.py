"""Security checks of the configuration, and the rate limit of clients.

A service that other machines can reach has to have a token.
"""

import ipaddress
import time

from lacuna_server.wire.config import ConfigError, ServerConfig
from lacuna_server.wire.protocol import ServiceError


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
