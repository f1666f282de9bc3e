"""The commands of ``python -m training``: the corpus of code, and what a model's drafts are trained on it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lacuna_model.commands import output
from lacuna_model.core.errors import RequestError
from lacuna_model.hub.models import DEFAULT_MODEL, SMALL_MODEL
from training.options import (
    CORPUS,
    CorpusOption,
    DeviceOption,
    KeepOption,
    ModelOption,
    PackagesOption,
    SeedOption,
    ThreadsOption,
)

if TYPE_CHECKING:
    from training.loop import Asked

CORES = os.cpu_count() or 1
PACKAGES = Path(__file__).with_name("packages.toml")


def corpus(
    out: Annotated[Path, typer.Option("--out", help="Build the corpus in this folder.")] = CORPUS,
    packages: PackagesOption = None,
    benchmark: Annotated[
        list[Path] | None,
        typer.Option(
            "--exclude",
            metavar="FILE",
            help="Leave out files with text of these problems (.jsonl.gz). May be repeated.",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=0, help="Filter with this many processes; 0: filter in this process.")
    ] = CORES,
) -> None:
    """Build the training corpus from its list of packages."""
    from training.corpus import build_packages
    from training.packages import read_packages

    listed = read_packages(packages or PACKAGES)
    with output.counting("packages", len(listed)) as advance:
        manifest = build_packages(listed, out, benchmark_files=benchmark or (), workers=workers, advance=advance)
    output.say(f"{len(manifest.packages)} packages; see {out / 'manifest.json'}")


def edits(
    out: Annotated[Path, typer.Option("--out", help="Add the examples to the corpus in this folder.")] = CORPUS,
    packages: PackagesOption = None,
    releases: Annotated[
        int, typer.Option("--releases", min=2, help="Compare so many of the last releases of each package.")
    ] = 5,
    seed: SeedOption = 0,
) -> None:
    """Make examples of next edits from consecutive releases of packages; those in the ledger stay as they are."""
    from training.corpus import benchmarks_of
    from training.edits import LEDGER, make
    from training.packages import read_packages

    listed = read_packages(packages or PACKAGES)
    (out / "downloads").mkdir(parents=True, exist_ok=True)
    with output.counting("packages", None) as advance:
        known = benchmarks_of(listed, out / "downloads")
        found = make(listed, out, releases=releases, advance=advance, benchmarks=known, seed=seed)
    output.say(f"{sum(one.examples for one in found):,} examples of {len(found)} packages; see {out / LEDGER}")


@contextmanager
def _asked(model: str, hours: float, **chosen: Any) -> Iterator["Asked"]:
    """What a training is asked for; a bar shows how far it is."""
    from lacuna_model.hub import models
    from training.loop import Asked

    path = models.weights(model)
    with output.counting("share of the time, in thousandths", 1000) as advance:
        yield Asked(path=path, seconds=hours * 3600, say=output.say, advance=advance, **chosen)


def masks(
    hours: Annotated[float, typer.Option("--hours", min=0.0, help="Train for this many hours.")],
    corpus: CorpusOption = CORPUS,
    out: KeepOption = Path("masks"),
    teacher: Annotated[
        Path | None,
        typer.Option("--teacher", help="Learn what another model says, in this file of `python -m training targets`."),
    ] = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = 0,
    device: DeviceOption = "",
    model: ModelOption = SMALL_MODEL,
) -> None:
    """Train the mask rows of a model that drafts, and report how many of the tokens of one pass hold."""
    from lacuna_model.loading import rows_file
    from training.masks import NAME, train

    with _asked(model, hours, corpus=corpus, out=out, seed=seed, threads=threads, device=device) as asked:
        train(asked, rows_file.shipped(model), teacher)
    output.say(f"the mask rows are {out / NAME}.safetensors; what ships is in model/lacuna_model/loading/rows")


def rows(
    kind: Annotated[Literal["edit", "infill"], typer.Argument(help="Train the rows of next edits, or those of fills.")],
    hours: Annotated[float, typer.Option("--hours", min=0.0, help="Train for this many hours, all runs together.")],
    corpus: CorpusOption = CORPUS,
    out: KeepOption = Path("rows"),
    seed: SeedOption = 0,
    threads: ThreadsOption = 0,
    device: DeviceOption = "",
    model: ModelOption = SMALL_MODEL,
) -> None:
    """Train additions to rows of tokens, and report at thirds how many held-out answers are right."""
    from training.rows import train

    with _asked(model, hours, corpus=corpus, out=out, seed=seed, threads=threads, device=device) as asked:
        train(asked, kind)
    output.say(f"the rows are {out / kind}.safetensors")


def targets(
    out: Annotated[Path, typer.Option("--out", help="Add the prompts to this file; go on from those in it.")],
    prompts: Annotated[int, typer.Option("--prompts", min=1, help="Stop when the file has so many prompts.")],
    corpus: CorpusOption = CORPUS,
    held_out: Annotated[bool, typer.Option("--held-out", help="Read held-out packages.")] = False,
    seed: SeedOption = 0,
    threads: ThreadsOption = 0,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Keep what a model says after every token of prompts, for the mask rows of a model that drafts for it."""
    from lacuna_model.fim.loading import LoadedFim
    from lacuna_model.readers import NONE, load
    from training.masks import make

    loaded = load(model, threads=threads, draft_model=NONE)
    if not isinstance(loaded, LoadedFim):
        raise RequestError("an open checkpoint verifies no drafts, and has no targets")
    split = "held_out" if held_out else "train"
    with output.counting("prompts", prompts) as advance:
        found = make(loaded, corpus, out, split=split, count=prompts, seed=seed, threads=threads, advance=advance)
    output.say(f"{out} has {len(found)} prompts of {sum(len(one.ids) for one in found):,} tokens")
