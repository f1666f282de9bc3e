"""``lacuna train``: adapts the canvas side; builds and packs its corpus and scores the result."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from lacuna_model import models
from lacuna_model.models import ADAPTED_MODEL
from lacuna_server import output
from lacuna_server.commands.options import CORPUS, CorpusOption, JsonOption, ListedModelOption

app = typer.Typer(name="train", help="Train the canvas side of a model.", invoke_without_command=True)
SHARDS = models.cache_dir() / "shards"
OUT = models.cache_dir() / "train"
CORES = os.cpu_count() or 1
ShardsOption = Annotated[Path, typer.Option("--shards", help="The folder that `lacuna train pack` made.")]


@app.callback()
def train(
    context: typer.Context,
    shards: ShardsOption = SHARDS,
    out: Annotated[Path, typer.Option("--out", help="Where checkpoint, adapter and log go.")] = OUT,
    recipe_file: Annotated[Path | None, typer.Option("--recipe", help="Options of training, as JSON.")] = None,
    minutes: Annotated[float | None, typer.Option(min=0.0, help="Wall time, resumed runs counted in.")] = None,
    max_steps: Annotated[int | None, typer.Option(min=1)] = None,
    rank: Annotated[int | None, typer.Option(min=1, help="Rank of the update.")] = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in --out.")] = False,
    start_from: Annotated[Path | None, typer.Option("--from", help="Begin with this adapter's weights.")] = None,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0: torch's choice.")] = 0,
    model: ListedModelOption = ADAPTED_MODEL,
) -> None:
    """Adapt the canvas side until the minutes are used up; Ctrl-C or SIGTERM checkpoints first."""
    if context.invoked_subcommand is not None:
        return
    import msgspec
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from lacuna_model import memory
    from lacuna_model.train import run
    from lacuna_model.train.recipe import Recipe, read_recipe
    from lacuna_model.train.throughput import describe

    memory.reuse_all_freed()
    if threads:
        torch.set_num_threads(threads)
    recipe = read_recipe(recipe_file) if recipe_file else Recipe()
    given = {"minutes": minutes, "max_steps": max_steps, "rank": rank, "seed": seed}
    options = {name: value for name, value in given.items() if value is not None}
    recipe = msgspec.structs.replace(recipe, train=msgspec.structs.replace(recipe.train, **options))
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("training", total=recipe.train.minutes)

        def report(figures: dict[str, float]) -> None:
            bar.update(task, completed=figures["minutes"], description=describe(figures))

        base = run.Base(models.path(models.find(model)))
        run.train(base, shards, out, recipe, report, resume=resume, start_from=start_from)


@app.command()
def validate(
    adapter: Annotated[Path, typer.Option("--adapter", help="The adapter, or the checkpoint.pt behind it, to score.")],
    shards: ShardsOption = SHARDS,
    samples: Annotated[int, typer.Option(min=1, help="Stretches of held-out text.")] = 64,
    language: Annotated[str, typer.Option("--language", help="Which held-out files.")] = "python",
    context: Annotated[int, typer.Option(min=64, max=4096, help="Tokens around the gaps of a stretch, at most.")] = 384,
    json_output: JsonOption = False,
    model: ListedModelOption = ADAPTED_MODEL,
) -> None:
    """Score an adapter on held-out files: masked slots, frontier, end-of-gap, self-correction."""
    import msgspec

    from lacuna_model.train import run

    base = run.Base(models.path(models.find(model)))
    canvas = base.load_canvas(adapter)
    found = run.score_held_out(base, canvas, shards, num_samples=samples, language=language, context=context)
    if json_output:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        return
    for name, value in msgspec.structs.asdict(found).items():
        if name != "reliability":
            sys.stdout.write(f"{name:24} {value:.3f}\n" if isinstance(value, float) else f"{name:24} {value}\n")


@app.command("corpus")
def corpus_command(
    out: Annotated[Path, typer.Option("--out", help="The folder to build in.")] = CORPUS,
    packages: Annotated[
        Path | None, typer.Option("--packages", help="A package list; by default the one that ships.")
    ] = None,
    benchmark: Annotated[
        list[Path] | None, typer.Option("--exclude", help="Problems (.jsonl.gz) whose text must not be in it.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes that filter; 0: none beside this one.")] = CORES,
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
            workers=workers,
        )
    output.say(f"{len(manifest.packages)} packages; see {out / 'manifest.json'}")


@app.command()
def pack(
    corpus: CorpusOption = CORPUS,
    out: Annotated[Path, typer.Option("--out", help="The folder for the shards.")] = SHARDS,
    megabytes: Annotated[float, typer.Option(min=0.1, max=55, help="Largest shard.")] = 4,
    model: ListedModelOption = ADAPTED_MODEL,
) -> None:
    """Tokenise a corpus into the shards that training reads."""
    from rich.console import Console
    from rich.progress import Progress

    from lacuna_model.tokenizer import Tokenizer
    from lacuna_model.train.packing import pack_corpus
    from lacuna_model.weights import GgufFile

    tokenizer = Tokenizer(GgufFile(models.path(models.find(model))).vocabulary())
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("packing", total=None)
        paths = pack_corpus(
            corpus,
            out,
            tokenizer,
            lambda done, total, what: bar.update(task, completed=done, total=total, description=what),
            max_bytes=int(megabytes * 1e6),
        )
    output.say(f"{len(paths)} shards in {out}")


@app.command()
def prior(
    corpus: CorpusOption = CORPUS,
    out: Annotated[Path, typer.Option("--out", help="Where the numbers go.")] = Path("weights.json"),
    cases: Annotated[int, typer.Option(min=1, help="Cases of one to four gaps, over all held-out packages.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Which gaps are drawn.")] = 0,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0: as many as the engine takes.")] = 0,
    model: ListedModelOption = ADAPTED_MODEL,
) -> None:
    """Fit how much canvas side, base and workspace prior count, on the held-out Python files of a corpus."""
    from lacuna_model.loader import load_model
    from lacuna_model.train.prior import fit_main, held_out_documents

    documents = held_out_documents(corpus)
    with output.counting("gaps", cases) as advance:
        fit_main(load_model(model, threads=threads), documents, out, num_cases=cases, seed=seed, advance=advance)
    output.say(f"the weights are in {out}; what ships is model/lacuna_model/prior/weights.json")


@app.command()
def confidence(
    corpus: CorpusOption = CORPUS,
    out: Annotated[Path, typer.Option("--out", help="Where the numbers go.")] = Path("confidence.json"),
    cases: Annotated[int, typer.Option(min=1, help="Cursors in lines of held-out files.")] = 800,
    seed: Annotated[int, typer.Option(min=0, help="Which cursors are drawn.")] = 0,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0: as many as the engine takes.")] = 0,
    model: ListedModelOption = ADAPTED_MODEL,
) -> None:
    """Fit how likely suggestions are on half of the held-out packages, and tell what that comes to on the others."""
    from lacuna_model.evaluate.engines import available_engines
    from lacuna_model.evaluate.typed import table
    from lacuna_model.loader import load_model
    from lacuna_model.train.confidence import fit_main, held_out_documents

    documents = held_out_documents(corpus)
    filler = available_engines(load_model(model, threads=threads))["lacuna"]()
    with output.counting("suggestions", cases) as advance:
        found = fit_main(filler, documents, out, num_cases=cases, seed=seed, advance=advance)
    output.print_table(table(found))
    output.say(f"the numbers are in {out}; what ships is model/lacuna_model/confidence.json")


def add_to(app_above: typer.Typer) -> None:
    """Adds the commands as a group."""
    app_above.add_typer(app)
