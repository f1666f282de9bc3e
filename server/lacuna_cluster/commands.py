"""``lacuna cluster``: the users and the dashboard of a service on a Ray cluster."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.commands import output

cluster_app = typer.Typer(name="cluster", no_args_is_help=True, help="Keep users of a cluster; print its dashboard.")


@cluster_app.command("add-user")
def add_user(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of users; it is made if there is none.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The user's name, for quotas, metrics and the log.")],
    requests_per_minute: Annotated[
        int, typer.Option(min=0, help="Refuse more fills than this in a minute; 0: no limit.")
    ] = 0,
) -> None:
    """Add a user to a file and print the user's token, which is nowhere else: the file has its hash."""
    from lacuna_cluster.people import users

    output.print_exact(users.add(file, name, requests_per_minute) + "\n")


@cluster_app.command("dashboard")
def dashboard() -> None:
    """Print the Grafana dashboard as JSON, to be imported there."""
    output.print_exact((files("lacuna_cluster") / "grafana.json").read_text("utf-8"))


def add_to(app: typer.Typer) -> None:
    """Registers the commands."""
    app.add_typer(cluster_app)
