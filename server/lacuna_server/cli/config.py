"""``lacuna config``: shows the value of every setting, and where it comes from."""

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.commands import output
from lacuna_model.commands.program import JsonOption
from lacuna_server.wire import layers
from lacuna_server.wire.config import ServerConfig, Settings, properties

FAILED = 1
WIDTH, INDENT = 80, "    "


def config(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Show what holds for this file or folder; by default, the current folder."),
    ] = None,
    path: Annotated[bool, typer.Option("--path", help="Print only the path of your own file.")] = False,
    json_output: JsonOption = False,
) -> None:
    """Show every setting: its value, where that comes from (a file, the environment, the default), and its meaning."""
    if path:
        output.print_exact(f"{layers.user_file()}\n")
        return
    place = file or Path()
    folder = place if place.is_dir() else place.parent
    found = layers.read(folder)
    problems = layers.problems(found)
    keys = layers.effective(found)
    keys["model"] = layers.SourcedValue(layers.model(found).name, keys["model"].source)
    keys["token"] = keys["token"]._replace(value="(set)" if keys["token"].value else "")
    project = layers.project_file(folder)
    files = {"user": str(layers.user_file()), "project": str(project) if project is not None else None}
    if json_output:
        shown = {name: {"value": one.value, "from": one.source} for name, one in keys.items()}
        output.print_json({"files": files, "settings": shown, "problems": problems})
    else:
        _print(files, keys)
        for problem in problems:
            output.say(problem)
    if problems:
        raise typer.Exit(FAILED)


def _print(files: dict[str, str | None], keys: dict[str, layers.SourcedValue]) -> None:
    import msgspec

    known = properties(ServerConfig) | properties(Settings)
    shared = [name for name in keys if name in layers.FOR_PROJECTS]
    own = [name for name in keys if name not in layers.FOR_PROJECTS]
    for heading, names in (("# of your file and of a project's", shared), ("# of your own file alone", own)):
        output.print_exact(f"{heading}\n\n")
        for name in names:
            one = keys[name]
            value = "unset" if one.value is None else msgspec.json.encode(one.value).decode()
            about = textwrap.fill(known[name]["description"], WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
            output.print_exact(f"{name} = {value}  ({one.source})\n{about}\n")
        output.print_exact("\n")
    for whose, file in files.items():
        absent = "" if file is None or Path(file).is_file() else ", which does not exist"
        output.print_exact(f"{whose}: {file or 'none'}{absent}\n")
