"""The commands that fit numbers which ship with the package: ``fit-gate`` and ``fit-ranking``."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lacuna_model.commands import output
from lacuna_model.hub.models import DEFAULT_MODEL
from training.options import CORPUS, CorpusOption, ModelOption, ThreadsOption


def fit_gate(
    corpus: CorpusOption = CORPUS,
    records: Annotated[
        Path, typer.Option("--records", help="Keep what the models write in this JSONL file, and go on from it.")
    ] = Path("cursors.jsonl"),
    out: Annotated[Path, typer.Option("--out", help="Write the gate to this file.")] = Path("gate.json"),
    cursors: Annotated[
        int, typer.Option(min=0, help="Ask until so many cursors of this model are known; 0: fit only.")
    ] = 10_000,
    threads: ThreadsOption = 0,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fit the gate of suggestions at cursors of held-out files, and show its effect in packages not seen."""
    from tests.benchmarks.fitting import gate
    from tests.benchmarks.fitting.cursors import ask, held_out_documents, read

    from lacuna_model.engine import Engine

    documents = held_out_documents(corpus)
    if cursors:
        engine = Engine.load(model, threads=threads)
        with output.counting("cursors", cursors) as advance:
            ask(documents, engine, records, cursors, advance)
    cases = gate.cases(read(records), documents)
    judgements = gate.crossed(cases)
    output.print_table(gate.table([gate.effect(cases, judgements, one) for one in gate.THRESHOLDS]))
    out.write_bytes(msgspec.json.encode(gate.fit(cases)) + b"\n")
    output.say(f"wrote {out}; the engine reads model/lacuna_model/decode/gate.json")


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
    app.command("fit-gate")(fit_gate)
    app.command("fit-ranking")(fit_ranking)
