"""The command ``typing``: a person who types real code in a real Neovim."""

import asyncio
import shutil
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from tests.benchmarks.editor.figures import table
from tests.benchmarks.editor.typing import asking, jumping, person
from tests.benchmarks.editor.typing.asking import Asked
from tests.benchmarks.editor.typing.jumping import Waited
from tests.benchmarks.editor.typing.person import Pace, Typed
from tests.benchmarks.editor.typing.stretches import stretches
from tests.benchmarks.engine.busy_core import busy_core
from tests.benchmarks.service import own

from lacuna_model.commands import output
from lacuna_model.commands.options import JsonOption
from lacuna_model.hub import models
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.client import lifecycle
from lacuna_server.wire.config import Dial
from training.options import ModelOption

PLUGIN = Path(__file__).parents[3] / "editor-clients/neovim"
LLAMA_PORT = 8012
LLAMA_URL = f"http://127.0.0.1:{LLAMA_PORT}/infill"


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
    jumps: Annotated[
        int, typer.Option(min=0, help="Open two files cold and go to this many places of each instead.")
    ] = 0,
    min_confidence: Annotated[float | None, typer.Option(help="With --ask: the setting of this name.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Use this many stretches; 0: all.")] = 0,
    key_s: Annotated[float, typer.Option(min=0, help="Wait this many seconds after a key.")] = 0.2,
    line_s: Annotated[float, typer.Option(min=0, help="Wait this many seconds before a line.")] = 1.0,
    parts: Annotated[
        bool, typer.Option("--parts", help="Also take the first words of a suggestion where two or more are right.")
    ] = False,
    busy: Annotated[bool, typer.Option("--busy", help="Keep one core busy during the run.")] = False,
    nvim: Annotated[str, typer.Option(metavar="PROGRAM", help="Neovim 0.11.")] = _neovim(),
    plugin: Annotated[Path, typer.Option(help="The folder of Lacuna's plugin.")] = PLUGIN,
    suggest: Annotated[Dial | None, typer.Option(help="Lacuna's setting of this name, in place of the user's.")] = None,
    other: Annotated[
        list[Path] | None,
        typer.Option("--other", metavar="FILE", help="A TOML file that describes another plugin, which types in turn."),
    ] = None,
    llama_vim: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A checkout of llama.vim, which types in turn.")
    ] = None,
    llama_url: Annotated[str, typer.Option(help="The llama.cpp server of llama.vim, with the same GGUF.")] = LLAMA_URL,
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

    async def run() -> Sequence[Typed | Asked | Waited]:
        if jumps:
            files = list(dict.fromkeys(stretch.path for stretch in chosen))
            async with own.ended():
                one = person.lacuna(plugin, model=models.absolute(model), minConfidence=0)
                return await jumping.jump(files, one, nvim, jumps, output.say)
        async with own.service(model) as address:
            if ask:
                sure: dict[str, object] = {} if min_confidence is None else {"minConfidence": min_confidence}
                return await asking.ask(chosen, address, sure, output.say)
            running = lifecycle.find()
            assert running is not None
            plugins = [person.lacuna(plugin, running.pid, **({"suggest": suggest} if suggest else {}))]
            plugins += map(person.described, other or ())
            if llama_vim:
                plugins.append(person.llama_vim(llama_vim, llama_url))
            return await person.type_all(chosen, plugins, nvim, Pace(key_s, line_s, parts), output.say)

    with own.runtime_folder(backend=backend), busy_core() if busy else nullcontext():
        found = asyncio.run(run())
    if records:
        records.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in found))
    rows: list[msgspec.Struct] = [
        *person.rows([one for one in found if isinstance(one, Typed)]),
        *asking.rows([one for one in found if isinstance(one, Asked)]),
        *jumping.rows([one for one in found if isinstance(one, Waited)]),
    ]
    if json_output:
        output.print_json(rows)
    else:
        output.print_table(table(rows))


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("typing")(typing)
