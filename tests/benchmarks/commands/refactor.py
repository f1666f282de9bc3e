"""The command ``confidence``: how sure a refactor may be of its fills."""

from typing import Annotated

import typer
from tests.benchmarks.commands.options import ListedModelOption

from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.cli.commands.options import JsonOption
from lacuna_server.console import output
from training.options import CORPUS, CorpusOption, ThreadsOption


def confidence(
    corpus: CorpusOption = CORPUS,
    places: Annotated[int, typer.Option(min=1, help="Fill this many places of each kind.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Draw the files and places with this random seed.")] = 0,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ListedModelOption = DEFAULT_MODEL,
) -> None:
    """Refill parts of held-out Python files as refactors do, and count the right fills by their confidence."""
    from tests.benchmarks.fitting.confidence import held_out_documents
    from tests.benchmarks.refactor import calibration

    from lacuna_model.engine import Engine

    texts = [document.text for document in held_out_documents(corpus) if document.language == "python"]
    engine = Engine.load(model, threads=threads)
    found: list[calibration.Judged] = []
    with output.counting("places", places * len(calibration.KINDS)) as advance:
        for kind in calibration.KINDS:
            found += calibration.judge(texts, kind, engine.fill, places, seed, advance)
    by_kind = {kind: [one for one in found if one.kind == kind] for kind in calibration.KINDS} | {"all": found}
    rows = {kind: calibration.calibrated(own) for kind, own in by_kind.items()}
    if json_output:
        output.print_json({"rows": rows, "fills": found})
        return
    for kind, own in rows.items():
        output.print_table(calibration.table(kind, own))


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("confidence")(confidence)
