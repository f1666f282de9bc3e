"""The command ``names``: suggestions at places whose next name is declared only elsewhere."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from tests.benchmarks.held_out import names as measuring
from tests.benchmarks.held_out.projects import lay_out

from lacuna_model.commands import output
from lacuna_model.engine import Engine
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_model.snippets.chooser import SnippetChooser
from training.options import ModelOption

# Seconds in which a project is read.
READ_SECONDS = 60.0


def names(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="The corpus of `python -m training corpus`.")],
    projects: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where its held-out projects are laid out.")],
    count: Annotated[int, typer.Option("--count", min=1, help="Places per language and kind.")] = 40,
    ways: Annotated[
        str, typer.Option("--ways", help="Fill in these ways, separated by commas.")
    ] = "without,signatures",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Draw the places with this random seed.")] = 0,
    records: Annotated[
        Path | None, typer.Option("--records", help="Write every fill to this JSONL file, and go on from it.")
    ] = None,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Fill lines of held-out projects from a name on that is declared only in another file, or in a package.

    Without signatures of packages and with them; ranked: of three candidates, the one with the fewest unknown names;
    soft: names that are nowhere give way to likely known ones. Fills that are recorded already are not made again.
    """
    chosen = [way for way in measuring.WAYS if way in ways.split(",")]
    wanted = measuring.cases(lay_out(corpus, projects), count, seed)
    engine, found = Engine.load(model), list[measuring.Filled]()
    if records is not None and records.exists():
        found += map(measuring.decoded, records.read_bytes().splitlines())

    def read(project: Path) -> SnippetChooser:
        return engine.workspaces.read(str(project), READ_SECONDS).snippets

    done = {(one.case, one.way) for one in found}
    with (
        output.counting("places", len(wanted) * len(chosen)) as advance,
        records.open("ab") if records is not None else nullcontext() as kept,
    ):
        for one in measuring.measure(engine.fill, engine.model.tokenizer, wanted, chosen, read, done):
            found.append(one)
            if kept is not None:
                kept.write(msgspec.json.encode(one, enc_hook=str) + b"\n")
                kept.flush()
            advance()
    output.print_table(measuring.table(found))


def add_to(app: typer.Typer) -> None:
    """Registers the command."""
    app.command("names")(names)
