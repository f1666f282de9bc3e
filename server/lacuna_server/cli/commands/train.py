"""``lacuna train``: builds the corpus of code, and fits the probability of suggestions on its held-out files."""

import os
from pathlib import Path
from typing import Annotated

import typer

from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import CORPUS, CorpusOption, ModelOption
from lacuna_server.console import output

app = typer.Typer(name="train", help="Build the corpus, and fit what is learnt from it.", no_args_is_help=True)
CORES = os.cpu_count() or 1


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
    from lacuna_model.train.stored.packages import read_packages

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
def confidence(
    corpus: CorpusOption = CORPUS,
    out: Annotated[Path, typer.Option("--out", help="Where the numbers go.")] = Path("confidence.json"),
    cases: Annotated[int, typer.Option(min=1, help="Cursors in lines of held-out files.")] = 800,
    seed: Annotated[int, typer.Option(min=0, help="Which cursors are drawn.")] = 0,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0: as many as the engine takes.")] = 0,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fit how likely suggestions are on half of the held-out packages, and tell what that comes to on the others."""
    from lacuna_model.backends.readers import load
    from lacuna_model.evaluate.bench.typed import table
    from lacuna_model.evaluate.fitting.confidence import fit_main, held_out_documents
    from lacuna_model.evaluate.tasks.engines import available_engines

    documents = held_out_documents(corpus)
    filler = available_engines(load(model, threads=threads))["lacuna"]()
    with output.counting("suggestions", cases) as advance:
        found = fit_main(filler, documents, out, num_cases=cases, seed=seed, advance=advance)
    output.print_table(table(found))
    output.say(f"the numbers are in {out}; what ships is model/lacuna_model/confidence.json")


def add_to(app_above: typer.Typer) -> None:
    """Adds the commands as a group."""
    app_above.add_typer(app)
