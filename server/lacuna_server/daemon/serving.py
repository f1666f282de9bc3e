"""Makes this process the user's service. It listens and announces its address before it loads heavy modules."""

import contextlib
import errno
import os
import secrets
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any, NoReturn

import msgspec

from lacuna_model.hub import models
from lacuna_server.client import lifecycle
from lacuna_server.client.lifecycle import LifecycleError, Running
from lacuna_server.wire import layers
from lacuna_server.wire.config import DEFAULT_PORT, ServerConfig, check_config

BACKLOG = 1024


def configured(
    flags: Mapping[str, Any], file: Path | None, usual: Mapping[str, Any] = MappingProxyType({})
) -> ServerConfig:
    """Return the configuration of the files, or of ``file`` alone, under the options that were given.

    ``usual`` are defaults other than those of the settings.

    Raises ConfigError.
    """
    given = layers.options(flags)
    files = layers.read(Path()) if file is None else layers.read(None, user=file)
    settings = layers.service(layers.required([layers.SettingsLayer("", usual), *files, given]))
    return msgspec.structs.replace(settings, model=models.absolute(settings.model))


def serve(config: ServerConfig) -> None:
    """Serve until a signal or idleness ends it.

    Raises ConfigError, ModelNotFoundError, and LifecycleError where the service cannot be started.
    """
    if config.engine == ServerConfig().engine:
        models.weights(config.model)
    check_config(config)
    asked = list[str]()

    def end_at_once(number: int, frame: FrameType | None) -> NoReturn:
        asked.append(signal.Signals(number).name)  # what is raised while a module is imported may be ignored
        sys.exit(0)

    signal.signal(signal.SIGTERM, end_at_once)  # until the service runs and ends gracefully
    with (
        lifecycle.only_service(),
        listen(config) as listener,
        listen_privately(config) or contextlib.nullcontext() as private,
    ):
        # From here on clients can connect: they wait in the listener's queue while the other modules are loaded.
        # Where no token is required, this one still distinguishes this user's own clients from those of others.
        token = config.token or secrets.token_urlsafe(32)
        path = private.getsockname() if private else ""
        lifecycle.announce(Running(url(config, listener), token, path, pid=os.getpid()))
        from lacuna_server.daemon import running

        listeners = [listener, private] if private else [listener]
        running.run(config, listeners, url(config, listener), token, asked)


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


def listen_privately(config: ServerConfig) -> socket.socket | None:
    """Return a socket that listens in the user's private folder, so that own clients need not wait among strangers.

    None where paths are too long for a socket, or sockets have no paths (Windows), and with TLS, which is for clients
    on other machines.
    """
    if config.cert or not hasattr(socket, "AF_UNIX"):
        return None
    path = lifecycle.socket_path()
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(os.fspath(path))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        return None
    return listener
