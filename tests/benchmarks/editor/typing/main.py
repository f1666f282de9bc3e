"""The command ``typing``: what a person who types real code saves, and whether what is shown is right."""

import asyncio
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer
from tests.benchmarks.editor.typing import asking, person
from tests.benchmarks.editor.typing.stretches import stretches
from tests.benchmarks.figures import Row, show
from tests.benchmarks.records import Records
from tests.benchmarks.service import busy_core, runtime_folder, service

from lacuna_model.commands.program import JsonOption
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.client import lifecycle
from training.options import ModelOption

PLUGIN = Path(__file__).parents[4] / "editor-clients/neovim"


def _neovim() -> str:
    beside = Path(sys.executable).parent / "nvim"
    return str(beside) if beside.exists() else shutil.which("nvim") or "nvim"


def typing(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="STRETCHES", help='Stretches of files, one a line: {"path": ..., "first": ..., "last": ...}.'
        ),
    ],
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask the language server at cursors instead, without an editor.")
    ] = False,
    min_confidence: Annotated[float | None, typer.Option(help="With --ask: the setting of this name.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Use this many stretches; 0: all.")] = 0,
    busy: Annotated[bool, typer.Option("--busy", help="Keep one core busy during the run.")] = False,
    nvim: Annotated[str, typer.Option(metavar="PROGRAM", help="Neovim 0.11.")] = _neovim(),
    other: Annotated[
        list[Path] | None,
        typer.Option("--other", metavar="FILE", help="A TOML file that describes another plugin, which types in turn."),
    ] = None,
    backend: Annotated[
        Literal["auto", "own", "llama"], typer.Option(help="What reads the model of Lacuna's service.")
    ] = "auto",
    records: Annotated[
        Path | None, typer.Option("--records", help="Write the result of every stretch or cursor to this JSONL file.")
    ] = None,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Type stretches of real files in a real Neovim, and count what suggestions save."""
    chosen = stretches(file)[: limit or None]

    async def run() -> list[Row]:
        async with service(model):
            if ask:
                sure: dict[str, object] = {} if min_confidence is None else {"minConfidence": min_confidence}
                with Records(records, asking.Asked, anew=True) as asked:
                    return asking.rows(await asking.ask(chosen, sure, asked))
            running = lifecycle.find()
            assert running is not None
            plugins = [person.lacuna(PLUGIN, running.pid), *map(person.described, other or ())]
            with Records(records, person.Typed, anew=True) as typed:
                return person.rows(await person.type_all(chosen, plugins, nvim, person.Pace(), typed))

    with runtime_folder(backend=backend), busy_core() if busy else nullcontext():
        show(asyncio.run(run()), json_output)
