"""``lacuna cluster``: users and the dashboard; and what ``lacuna serve --cluster`` does."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.commands import output
from lacuna_model.hub import models
from lacuna_server.wire.config import ConfigError, ServerConfig, check_tls

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


def serve(config: ServerConfig, address: str | None, file: Path | None, replicas: int | None) -> None:
    """Serve on a Ray cluster until a signal. Raises ConfigError and ClusterError."""
    from lacuna_cluster import settings, starting

    if config.token:
        raise ConfigError("a cluster has a token for each user: see users in CLUSTER.md")
    check_tls(config)

    def args() -> settings.ClusterArgs:
        return settings.of_service(config, file, replicas)

    first = args()
    if settings.service_config(first, first.engines[0]).engine == ServerConfig().engine and address is None:
        for engine in first.engines:
            for model in engine.models:
                models.require(model)
    starting.run(args, config, address)
