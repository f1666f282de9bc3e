"""``lacuna config``: shows the value of every setting, and where it comes from."""

from pathlib import Path
from typing import Annotated

import typer

from lacuna_server.cli.commands.options import JsonOption
from lacuna_server.console import output
from lacuna_server.wire import layers

FAILED = 1
SECRET = {"token"}


def config(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Show what holds for this file or folder; by default, the current folder."),
    ] = None,
    path: Annotated[bool, typer.Option("--path", help="Print only the path of your own file.")] = False,
    json_output: JsonOption = False,
) -> None:
    """Show the value of every setting and where it comes from: a file, the environment or the default."""
    if path:
        output.print_exact(f"{layers.user_file()}\n")
        return
    place = file or Path()
    folder = place if place.is_dir() else place.parent
    found = layers.read(folder)
    problems = layers.problems(found)
    keys = layers.held(found)
    keys["model"] = layers.Held(layers.model(found).name, keys["model"].source)
    for name in SECRET:
        keys[name] = keys[name]._replace(value="(set)" if keys[name].value else "")
    project = layers.project_file(folder)
    files = {"user": str(layers.user_file()), "project": str(project) if project is not None else None}
    if json_output:
        shown = {name: {"value": held.value, "from": held.source} for name, held in keys.items()}
        output.print_json({"files": files, "settings": shown, "problems": problems})
    else:
        _print(files, keys)
        for problem in problems:
            output.say(problem)
    if problems:
        raise typer.Exit(FAILED)


def _print(files: dict[str, str | None], keys: dict[str, layers.Held]) -> None:
    import msgspec
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("KEY", "VALUE", "FROM"):
        table.add_column(heading)
    for name, held in keys.items():
        value = "unset" if held.value is None else msgspec.json.encode(held.value).decode()
        table.add_row(name, value, held.source, style=None if held.source == layers.DEFAULT else "bold")
    output.print_table(table)
    for whose, file in files.items():
        absent = "" if file is None or Path(file).is_file() else ", which does not exist"
        output.print_exact(f"{whose}: {file or 'none'}{absent}\n")


def add_to(app: typer.Typer) -> None:
    """Registers the command."""
    app.command()(config)
