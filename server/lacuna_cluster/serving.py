"""``lacuna serve --cluster``: makes the arguments of a cluster from a file and from the options of `lacuna serve`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from lacuna_model.hub import models
from lacuna_server.wire import security
from lacuna_server.wire.config import ConfigError, ServerConfig

if TYPE_CHECKING:
    from lacuna_cluster.settings import ClusterArgs

# The keys of the service that a cluster has for each deployment of engine replicas.
OF_ENGINES = ("threads", "device", "cache_bytes")


def serve(config: ServerConfig, address: str | None, file: Path | None, replicas: int | None) -> None:
    """Serve on a Ray cluster until a signal. Raises ConfigError and ClusterError."""
    from lacuna_cluster import settings, starting

    if config.token:
        raise ConfigError("a cluster has a token for each user: see users in CLUSTER.md")
    security.check_tls(config)

    def args() -> "ClusterArgs":
        return settings.read(_keys(config, read(file) if file is not None else {}, replicas))

    first = args()
    if settings.service_config(first, first.engines[0]).engine == ServerConfig().engine and address is None:
        for engine in first.engines:
            for model in engine.models:
                models.require(model)
    starting.run(args, config, address)


def _keys(config: ServerConfig, keys: dict[str, Any], replicas: int | None) -> dict[str, Any]:
    """Return the keys of a file, with what the options of `lacuna serve` and the settings say beside them."""
    from lacuna_cluster import settings

    settings.read(keys)
    changed = _changed(config)
    first, *others = keys.get("engines", [{}])
    given = {name: value for name, value in changed.items() if name in OF_ENGINES}
    first = {"models": [config.model]} | given | first
    if replicas is not None:
        first["replicas"] = replicas
    service = {name: value for name, value in changed.items() if name not in settings.NOT_IN_CLUSTER}
    return (
        {"reachable": not security.is_loopback(config.host)}
        | keys
        | {
            "engines": [first, *others],
            "service": service | keys.get("service", {}),
        }
    )


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
