"""The commands that measure the language server: ``lsp``, its latency, and ``next-edits``, what it offers then."""

import asyncio
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from tests.benchmarks.editor import edits as next_edits
from tests.benchmarks.editor.figures import table
from tests.benchmarks.editor.latency import Cell, measure
from tests.benchmarks.edits.dataset import load_edit_cases
from tests.benchmarks.edits.scores import Answered, summarise
from tests.benchmarks.edits.scores import table as edits_table
from tests.benchmarks.service import own

from lacuna_model.commands import output
from lacuna_model.commands.options import JsonOption
from lacuna_model.hub.models import DEFAULT_MODEL
from training.options import ModelOption


def lsp(
    documents: Annotated[int, typer.Option(min=1, help="Type into this many texts of about 1,000 tokens.")] = 5,
    busy: Annotated[bool, typer.Option("--busy", help="Keep one core busy during the runs.")] = False,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Time the language server from keystroke to answer."""

    async def run() -> list[Cell]:
        async with own.service(model):
            return await measure(documents, busy=busy, advance=output.say)

    with own.runtime_folder():
        cells = asyncio.run(run())
    if json_output:
        output.print_json({"latency": cells})
    else:
        output.print_table(table(cells))


def edits(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The commits, such as edits_dev.jsonl.gz, or a corpus.")],
    limit: Annotated[int, typer.Option(min=0, help="Use at most this many commits; 0: all.")] = 0,
    kind: Annotated[Literal["", "repeat", "near"], typer.Option(help="Use commits of this kind alone.")] = "",
    way: Annotated[
        Literal["", "all at once", "one by one"], typer.Option(help="Ask in this way only; by default, in both.")
    ] = "",
    without_model: Annotated[
        bool, typer.Option("--without-model", help="Let no model run, so that the rules alone offer edits.")
    ] = False,
    records: Annotated[
        Path | None, typer.Option("--records", help="Write the verdict of every commit to this JSONL file.")
    ] = None,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Make the first change of commits in a real language server, and count which of their other changes it offers.

    It is asked for all places at once (`lacuna.propagate`), and for one place after another.
    """
    cases = load_edit_cases(file, limit, kind)
    ways = [way] if way else next_edits.WAYS

    async def run() -> list[Answered]:
        if without_model:
            return await next_edits.measure(cases, ways, output.say, "--engine", next_edits.NOWHERE)
        async with own.service(model):
            return await next_edits.measure(cases, ways, output.say)

    with own.runtime_folder():
        found = asyncio.run(run())
    if records:
        records.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in found))
    rows = summarise(found)
    if json_output:
        output.print_json({"rows": rows})
    else:
        output.print_table(edits_table(rows))


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("lsp")(lsp)
    app.command("next-edits")(edits)
