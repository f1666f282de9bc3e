"""``lacuna train``: adapts the canvas side; builds its corpus and scores the result."""

from pathlib import Path
from typing import Annotated

import typer

from lacuna_model import models
from lacuna_model.models import DEFAULT_MODEL
from lacuna_server import output
from lacuna_server.commands.options import JsonOption, ModelOption

app = typer.Typer(name="train", help="Train the canvas side of a model.", invoke_without_command=True)
CORPUS = models.cache_dir() / "corpus"
OUT = models.cache_dir() / "train"
CorpusOption = Annotated[Path, typer.Option("--corpus", help="The folder that `lacuna train corpus` made.")]


@app.callback()
def train(
    context: typer.Context,
    corpus: CorpusOption = CORPUS,
    out: Annotated[Path, typer.Option("--out", help="Where checkpoint, adapter and log go.")] = OUT,
    minutes: Annotated[float, typer.Option(min=0.0, help="Wall time, resumed runs counted in.")] = 60.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in --out.")] = False,
    rank: Annotated[int, typer.Option(min=1, help="Rank of the update.")] = 64,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    max_steps: Annotated[int, typer.Option(min=1)] = 1_000_000_000,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0: torch's choice.")] = 0,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Adapt the canvas side until the minutes are used up; Ctrl-C or SIGTERM checkpoints first."""
    if context.invoked_subcommand is not None:
        return
    from lacuna_model.train.loop import TrainOptions
    from lacuna_model.train.run import train_main

    options = TrainOptions(minutes=minutes, max_steps=max_steps, seed=seed, rank=rank)
    train_main(corpus, out, options=options, model=model, resume=resume, threads=threads)


@app.command()
def validate(
    adapter: Annotated[Path, typer.Option("--adapter", help="The adapter file to score.")],
    corpus: CorpusOption = CORPUS,
    samples: Annotated[int, typer.Option(min=1, help="Stretches of held-out text.")] = 64,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Score an adapter on held-out files: masked slots, frontier, end-of-gap, self-correction."""
    from lacuna_model.train.run import validate_main

    validate_main(corpus, adapter, model=model, num_samples=samples, as_json=json_output)


@app.command("corpus")
def corpus_command(
    out: Annotated[Path, typer.Option("--out", help="The folder to build in.")] = CORPUS,
    packages: Annotated[
        Path | None, typer.Option("--packages", help="A package list; by default the one that ships.")
    ] = None,
    benchmark: Annotated[
        list[Path] | None, typer.Option("--exclude", help="Problems (.jsonl.gz) whose text must not be in it.")
    ] = None,
) -> None:
    """Build the training corpus again from its list of packages."""
    from rich.console import Console
    from rich.progress import Progress

    import lacuna_model.train as home
    from lacuna_model.train.corpus import build_packages
    from lacuna_model.train.packages import read_packages

    listed = read_packages(packages or Path(home.__path__[0]) / "packages.toml")
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("corpus", total=None)
        manifest = build_packages(
            listed,
            out,
            lambda done, total, what: bar.update(task, completed=done, total=total, description=what),
            benchmark_files=benchmark or (),
        )
    output.say(f"{len(manifest.packages)} packages; see {out / 'manifest.json'}")


def add_to(app_above: typer.Typer) -> None:
    """Adds the commands as a group."""
    app_above.add_typer(app)
