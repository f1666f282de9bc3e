"""The commands that fit numbers which ship with the package: ``fit-confidence`` and ``fit-ranking``."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.console import output
from training.options import CORPUS, CorpusOption, ModelOption, ThreadsOption


def fit_confidence(
    corpus: CorpusOption = CORPUS,
    out: Annotated[Path, typer.Option("--out", help="Write the numbers to this file.")] = Path("confidence.json"),
    cases: Annotated[int, typer.Option(min=1, help="Use this many cursors in lines of held-out files.")] = 800,
    seed: Annotated[int, typer.Option(min=0, help="Draw the cursors with this random seed.")] = 0,
    threads: ThreadsOption = 0,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fit the confidence of suggestions on half of the held-out packages, and show its effect on the other half."""
    from tests.benchmarks.engine.typed import table
    from tests.benchmarks.fitting.confidence import fit_main, held_out_documents
    from tests.benchmarks.tasks.engines import available_engines

    from lacuna_model.engine import Engine

    documents = held_out_documents(corpus)
    engine = Engine.load(model, threads=threads)
    filler = available_engines(engine)["lacuna"]()
    with output.counting("suggestions", cases) as advance:
        found = fit_main(filler, documents, out, model=engine.model.name, num_cases=cases, seed=seed, advance=advance)
    output.print_table(table(found))
    output.say(f"wrote {out}; the engine reads model/lacuna_model/decode/confidence.json")


def fit_ranking(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The commits, such as edits_dev.jsonl.gz.")],
    out: Annotated[Path | None, typer.Option("--out", help="Write the weights to this file.")] = None,
) -> None:
    """Fit the weights with which next edits are ranked, and print what those of other repositories offer in each."""
    from tests.benchmarks.edits.dataset import load_edit_cases
    from tests.benchmarks.fitting import ranking

    cases = load_edit_cases(file)
    found = [one for case in cases for one in ranking.examples(case)]
    names = sorted({name for one in found for name in one.candidate.features})
    ranking.crossed(cases, found, names)
    if out:
        out.write_bytes(msgspec.json.format(msgspec.json.encode(ranking.fit(found, names)), indent=1) + b"\n")


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("fit-confidence")(fit_confidence)
    app.command("fit-ranking")(fit_ranking)
