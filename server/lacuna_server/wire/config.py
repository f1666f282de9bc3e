"""The configuration of ``lacuna serve``: one frozen struct, read from a TOML file and the command line."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, inspect

from lacuna_model.core.errors import LacunaError
from lacuna_model.hub.models import DEFAULT_MODEL

DEFAULT_PORT = 8377

Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[float, Meta(ge=0)]
Port = Annotated[int, Meta(ge=0, le=65535)]


class ConfigError(LacunaError):
    """The configuration cannot be used; the message names the key."""


class ServerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every setting of the service. Times are in seconds, sizes in bytes of UTF-8.

    - ``port``: None takes 8377, or a free port where 8377 is taken; 0 takes any free port.
    - ``token``: every client has to send it; "" asks for none.
    - ``threads``: CPU threads of the engine; 0 lets the engine choose. ``device``: cpu, cuda, cuda:1 or ""; "" takes a
      GPU where there is one.
    - ``engine``: the factory that the model worker calls, as ``module:function``. ``cache_bytes`` bounds the engine's
      cache of documents. The worker interleaves up to ``max_active`` requests, one step at a time.
    - ``max_held_bytes``: bounds the memory that all clients together occupy: open documents, messages that arrive or
      wait to be sent, texts of requests.
    - ``body_timeout_s``: time for the body of an HTTP request to arrive; 0: no limit.
    - ``worker_timeout_s``: a worker that has work and sends nothing for this long is killed and restarted; 0: never.
      ``load_timeout_s``: the same for a worker that loads its model.
    - ``idle_exit_s``: the service ends after this long without use; 0: never.
    - ``log_file``: the log's file, rotated when it is long; "": stderr.
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
    """Read a TOML file (None: defaults), override its values by ``flags``, and return the configuration.

    A flag has the name of its setting. Raises ConfigError that names the option or key, and OSError where the file
    cannot be read.
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
        raise ConfigError(_in_words(str(error), file, flags)) from None


def _in_words(error: str, file: Path | None, flags: Mapping[str, Any]) -> str:
    """Return what is wrong with a setting, where msgspec's message names types."""
    if unknown := re.search(r"unknown field `(\w+)`", error):
        return f"{file}: there is no setting {unknown[1]}"
    at = re.search(r"`\$\.(\w+)", error)
    settings = inspect.type_info(ServerConfig)
    assert at is not None, error
    assert isinstance(settings, inspect.StructType)
    must = f"must be {next(_words(field.type) for field in settings.fields if field.name == at[1])}"
    if at[1] in flags:
        return f"--{at[1].removesuffix('_s').replace('_', '-')} {must}"
    return f"{file}: {at[1]} {must}"


def _words(kind: inspect.Type) -> str:
    match kind:
        case inspect.UnionType(types=(first, _)):
            return _words(first)
        case inspect.IntType(ge=least, le=None) | inspect.FloatType(ge=least):
            return f"a number of at least {least:g}"
        case inspect.IntType(ge=least, le=most):
            return f"{least} to {most}"
        case inspect.BoolType():
            return "true or false"
        case inspect.VarTupleType():
            return "a list of texts"
    return "a text"
