"""``lacuna cluster`` and ``lacuna serve --cluster``: users, the dashboard, and the arguments of a cluster."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
import yaml

from lacuna_model.commands import output
from lacuna_model.hub import models
from lacuna_server.wire.config import ConfigError, ServerConfig, check_tls, is_loopback

if TYPE_CHECKING:
    from lacuna_cluster.settings import ClusterArgs


app = typer.Typer(name="cluster", no_args_is_help=True, help="Keep users of a cluster; print its dashboard.")


@app.command("add-user")
def add_user(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of users; it is made if there is none.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The user's name, for quotas, metrics and the log.")],
    requests_per_minute: Annotated[
        int, typer.Option(min=0, help="Refuse more fills than this in a minute; 0: no limit.")
    ] = 0,
) -> None:
    """Add a user to a file and print the user's token, which is nowhere else: the file has its hash."""
    from lacuna_cluster import users

    output.print_exact(users.add(file, name, requests_per_minute) + "\n")


@app.command("dashboard")
def dashboard() -> None:
    """Print the Grafana dashboard as JSON, to be imported there."""
    output.print_exact((files("lacuna_cluster") / "grafana.json").read_text("utf-8"))


# The keys of the service that a cluster has for each deployment of engine replicas.
OF_ENGINES = ("threads", "device", "cache_bytes")


def serve(config: ServerConfig, address: str | None, file: Path | None, replicas: int | None) -> None:
    """Serve on a Ray cluster until a signal. Raises ConfigError and ClusterError."""
    from lacuna_cluster import settings, starting

    if config.token:
        raise ConfigError("a cluster has a token for each user: see users in CLUSTER.md")
    check_tls(config)

    def args() -> "ClusterArgs":
        return settings.read(_keys(config, read(file) if file is not None else {}, replicas))

    first = args()
    if settings.service_config(first, first.engines[0]).engine == ServerConfig().engine and address is None:
        for engine in first.engines:
            for model in engine.models:
                models.weights(model)
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
        {"reachable": not is_loopback(config.host)}
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
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError) as error:  # such as a date that there is not, or text that is not UTF-8
        raise ConfigError(f"{file}: {str(error).splitlines()[0]}") from None
    if not isinstance(keys, dict):
        raise ConfigError(f"{file}: it has no keys")
    return keys


def _changed(config: ServerConfig) -> dict[str, Any]:
    """Return the keys of a configuration that differ from the defaults."""
    defaults = msgspec.to_builtins(ServerConfig())
    return {name: value for name, value in msgspec.to_builtins(config).items() if value != defaults[name]}
