"""Makes this process the user's service. It listens and announces its address before it loads heavy modules."""

import errno
import os
import secrets
import signal
import socket
import sys
from types import FrameType
from typing import NoReturn

from lacuna_server.client import lifecycle
from lacuna_server.client.lifecycle import LifecycleError, Running
from lacuna_server.wire import security
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.settings import DEFAULT_PORT

BACKLOG = 1024


def serve(config: ServerConfig) -> None:
    """Serve until a signal or idleness ends it.

    Raises ConfigError, and LifecycleError (such as AlreadyRunningError) where the service cannot be started.
    """
    security.check_config(config)
    signal.signal(signal.SIGTERM, _end_at_once)  # until the service runs and ends gracefully
    with lifecycle.only_service() as left_behind, listen(config) as listener:
        # From here on clients can connect: they wait in the listener's queue while the other modules are loaded.
        # Where no token is required, this one still distinguishes this user's own clients from those of others.
        token = config.token or secrets.token_urlsafe(32)
        lifecycle.announce(Running(os.getpid(), url(config, listener), token))
        from lacuna_server.daemon import running

        running.run(config, listener, url(config, listener), token, left_behind)


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(0)


def url(config: ServerConfig, listener: socket.socket) -> str:
    """Return the address of the service for clients on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)
    scheme = "https" if config.cert else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def listen(config: ServerConfig) -> socket.socket:
    """Return a listening socket. Raises LifecycleError if the address cannot be used."""
    port = DEFAULT_PORT if config.port is None else config.port
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        try:
            listener = socket.create_server((config.host, port), family=family, backlog=BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or config.port is not None:
                raise
            listener = socket.create_server((config.host, 0), family=family, backlog=BACKLOG)
    except OSError as error:
        raise LifecycleError(f"cannot listen on {config.host}, port {port}: {error.strerror or error}") from None
    # Connections inherit this option; asyncio sets it only on its own sockets. Without it every answer is 40 ms late.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":
        # Without this a closed connection keeps unread data for as long as the client's machine runs.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(config.send_timeout_s * 1e3))
    return listener
