"""The configuration of ``lacuna serve``: one frozen struct, from a TOML file and the command line."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lacuna_model.core.errors import LacunaError
from lacuna_model.hub.models import DEFAULT_MODEL

DEFAULT_PORT = 8377

Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[float, Meta(ge=0)]
Port = Annotated[int, Meta(ge=0, le=65535)]


class ConfigError(LacunaError):
    """A configuration that cannot be used, with the key it is about."""


class ServerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything the service can be told. Times are seconds, sizes bytes of UTF-8.

    ``port`` None takes 8377, or a free port where that is taken; 0 takes any free one. ``token`` is asked of every
    client where it is not "". ``threads`` 0 leaves the choice to the engine; ``device`` is cpu, cuda or "", which takes
    a GPU where there is one. ``idle_exit_s`` 0 never exits. ``engine`` names the factory that the model worker calls,
    as ``module:function``; ``cache_bytes`` bounds what it remembers of documents, and ``max_active`` requests are
    worked on step by step in turn. ``max_held_bytes`` bounds what all clients together have the service hold: open
    documents, messages on their way in and out, texts of requests. The body of an HTTP request has ``body_timeout_s``
    to come (0: any time). A worker that has work and says nothing for ``worker_timeout_s`` is ended and started again
    (0: never), and so is one that loads its model and says nothing for ``load_timeout_s``. ``log_file`` is where the
    log goes ("": stderr); it is turned over where it is long.
    """

    host: str = "127.0.0.1"
    port: Port | None = None
    token: str = ""
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    cert: str = ""
    key: str = ""

    model: str = DEFAULT_MODEL
    threads: Annotated[int, Meta(ge=0)] = 0
    device: str = ""
    engine: str = "lacuna_server.worker.main:load_engine"
    cache_bytes: Positive = 256 * 1024 * 1024

    max_active: Positive = 2
    max_queued: Positive = 64
    max_queued_per_session: Positive = 16
    worker_timeout_s: NotNegative = 120.0
    load_timeout_s: NotNegative = 600.0

    max_message_bytes: Positive = 16 * 1024 * 1024
    max_document_bytes: Positive = 2 * 1024 * 1024
    max_documents: Positive = 256
    max_regions: Positive = 256
    max_sessions: Positive = 1024
    max_held_bytes: Positive = 512 * 1024 * 1024
    messages_per_s: Positive = 200
    ping_interval_s: NotNegative = 20.0
    ping_timeout_s: NotNegative = 20.0
    send_timeout_s: NotNegative = 30.0
    body_timeout_s: NotNegative = 30.0
    resume_grace_s: NotNegative = 120.0

    idle_exit_s: NotNegative = 0.0
    shutdown_grace_s: NotNegative = 5.0
    log_code: bool = False
    log_file: str = ""


def load(file: Path | None, flags: Mapping[str, Any]) -> ServerConfig:
    """The configuration of a TOML file, overridden by ``flags``.

    Raises ConfigError that names an unknown key or a value that cannot be, and OSError where the file cannot be read.
    """
    values: dict[str, Any] = {}
    if file is not None:
        try:
            values = tomllib.loads(file.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: {error}") from None
    try:
        return msgspec.convert(values | dict(flags), ServerConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {error}" if file is not None else str(error)) from None
