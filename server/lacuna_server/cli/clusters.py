"""``lacuna serve --cluster``: makes the arguments of a cluster from a file and from the options of `lacuna serve`."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from lacuna_model.hub import models
from lacuna_server.wire import security
from lacuna_server.wire.config import ConfigError, ServerConfig

# The keys of the service that a cluster has for each deployment of engine replicas.
OF_ENGINES = ("threads", "device", "cache_bytes")


def serve(config: ServerConfig, address: str | None, file: Path | None, replicas: int | None) -> None:
    """Serve on a Ray cluster until a signal. Raises ConfigError and ClusterError."""
    from lacuna_server.cluster import settings, starting

    keys = read(file) if file is not None else {}
    engines = [dict(engine) for engine in keys.get("engines", [{}])]
    given = {name: value for name, value in _changed(config).items() if name in OF_ENGINES}
    engines[0] = {"models": [config.model]} | given | engines[0]
    if replicas is not None:
        engines[0]["replicas"] = replicas
    keys["engines"] = engines
    keys.setdefault("reachable", not security.is_loopback(config.host))
    service = {name: value for name, value in _changed(config).items() if name not in settings.NOT_IN_CLUSTER}
    keys["service"] = service | keys.get("service", {})
    args = settings.read(keys)
    if config.token:
        raise ConfigError("a cluster has a token for each user: see users in CLUSTER.md")
    security.check_tls(config)
    if settings.service_config(args, args.engines[0]).engine == ServerConfig().engine and address is None:
        for engine in args.engines:
            for model in engine.models:
                models.require(model)
    starting.run(args, config, address)


def read(file: Path) -> dict[str, Any]:
    """Return the keys of a YAML file. Raises ConfigError where it is none."""
    try:
        keys = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {str(error).splitlines()[0]}") from None
    if not isinstance(keys, dict):
        raise ConfigError(f"{file}: it has no keys")
    return keys


def _changed(config: ServerConfig) -> dict[str, Any]:
    """Return the keys of a configuration that differ from the defaults."""
    defaults = msgspec.to_builtins(ServerConfig())
    return {name: value for name, value in msgspec.to_builtins(config).items() if value != defaults[name]}
