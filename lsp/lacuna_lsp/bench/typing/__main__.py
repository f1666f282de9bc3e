"""Runs the typing benchmark with a service of its own; ``lacuna bench typing`` runs this module."""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import msgspec
from rich.console import Console

from lacuna_lsp.bench.__main__ import table
from lacuna_lsp.bench.service import ended, service
from lacuna_lsp.bench.typing import asking, jumping, person
from lacuna_lsp.bench.typing.asking import Asked
from lacuna_lsp.bench.typing.jumping import Waited
from lacuna_lsp.bench.typing.person import Pace, Plugin, Typed
from lacuna_lsp.bench.typing.stretches import stretches
from lacuna_model.core.errors import LacunaError
from lacuna_model.evaluate.bench.busy_core import busy_core
from lacuna_model.hub import models

FAILED = 1
PLUGIN = Path(__file__).parents[4] / "editor-clients/neovim"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the results and returns the exit code."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lacuna-typing-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder  # apart from the user's own service
        try:
            with busy_core() if options.busy else nullcontext():
                found = asyncio.run(_run(options))
        except LacunaError as error:
            print(f"lacuna: {error}", file=sys.stderr)
            return FAILED
    if options.records:
        options.records.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in found))
    typed, asked = [one for one in found if isinstance(one, Typed)], [one for one in found if isinstance(one, Asked)]
    waited = [one for one in found if isinstance(one, Waited)]
    rows: list[msgspec.Struct] = [*person.rows(typed), *asking.rows(asked), *jumping.rows(waited)]
    if options.json:
        sys.stdout.write(msgspec.json.encode(rows).decode() + "\n")
    else:
        Console().print(table(rows))
    return 0


async def _run(options: argparse.Namespace) -> Sequence[Typed | Asked | Waited]:
    def advance(what: str) -> None:
        print(what, file=sys.stderr)

    chosen = stretches(options.file)[: options.limit or None]
    if options.jumps:
        files = list(dict.fromkeys(stretch.path for stretch in chosen))
        async with ended():
            plugin = person.lacuna(options.plugin, model=models.absolute(options.model), minConfidence=0)
            return await jumping.jump(files, plugin, options.nvim, options.jumps, advance)
    async with service(options.model) as address:
        if options.ask:
            sure = {} if options.min_confidence is None else {"minConfidence": options.min_confidence}
            return await asking.ask(chosen, address, sure, advance)
        pace = Pace(options.key_s, options.line_s)
        return await person.type_all(chosen, _plugins(options), options.nvim, pace, advance)


def _plugins(options: argparse.Namespace) -> list[Plugin]:
    found = [person.lacuna(options.plugin)]
    if options.llama_vim:
        found.append(person.llama_vim(options.llama_vim, options.llama_url))
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lacuna bench typing", description="Type stretches of real files in Neovim, and count what is saved."
    )
    parser.add_argument("file", type=Path, help='stretches, one a line: {"path": ..., "first": ..., "last": ...}')
    parser.add_argument("--ask", action="store_true", help="ask the language server at cursors, without an editor")
    parser.add_argument(
        "--jumps", type=int, default=0, help="open two files cold and go to so many places of each, instead of typing"
    )
    parser.add_argument("--min-confidence", type=float, help="with --ask: the setting of this name")
    parser.add_argument("--limit", type=int, default=0, help="use so many stretches; 0: all")
    parser.add_argument("--key-s", type=float, default=0.2, help="seconds after a key (default: %(default)s)")
    parser.add_argument("--line-s", type=float, default=1.0, help="seconds before a line (default: %(default)s)")
    parser.add_argument("--busy", action="store_true", help="keep one core busy during the run")
    beside = Path(sys.executable).parent / "nvim"
    found = str(beside) if beside.exists() else shutil.which("nvim") or "nvim"
    parser.add_argument("--nvim", default=found, metavar="PROGRAM", help="Neovim 0.11 (default: %(default)s)")
    parser.add_argument("--plugin", type=Path, default=PLUGIN, help="the folder of Lacuna's plugin")
    parser.add_argument("--llama-vim", type=Path, metavar="FOLDER", help="a checkout of llama.vim, which types in turn")
    parser.add_argument(
        "--llama-url",
        default="http://127.0.0.1:8012/infill",
        metavar="URL",
        help="its llama.cpp server, with the same GGUF (default: %(default)s)",
    )
    parser.add_argument(
        "--model",
        default=models.DEFAULT_MODEL,
        help="use this model: a name from `lacuna models list` (default: %(default)s)",
    )
    parser.add_argument("--records", type=Path, metavar="FILE", help="write every stretch or cursor to this file")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON list")
    return parser


if __name__ == "__main__":
    sys.exit(main())
