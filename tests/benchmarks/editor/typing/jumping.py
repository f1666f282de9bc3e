"""A person opens a file and types at once, then rewrites lines here and there, in this file and in another.

Each place is a line of the file that they empty to write it again. A wait ends when Neovim draws a suggestion, however
unsure: this is about time alone.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from tests.benchmarks.editor.figures import percentile
from tests.benchmarks.editor.typing.neovim import Neovim, neovim
from tests.benchmarks.editor.typing.person import LOOK_S, Plugin

from lacuna_model.core.errors import RequestError

PATIENCE_S = 5.0
COLD_PATIENCE_S = 30.0
# The person looks at a place before they go on.
REST_S = 1.5
FAR = 30  # lines between two places of one file, at least
LEAST = 8  # characters of a line that is worth writing again


class Waited(msgspec.Struct, frozen=True):
    """The seconds from a key to the first suggestion at one place; None where none came in time."""

    what: str
    file: str
    row: int
    seconds: float | None


class WaitRow(msgspec.Struct, frozen=True):
    """The waits of one kind of place, in seconds, of those where something was shown."""

    what: str
    places: int
    shown: int
    wait_p50: float
    wait_p90: float


async def jump(
    files: Sequence[Path], plugin: Plugin, program: str, places: int, advance: Callable[[str], None]
) -> list[Waited]:
    """Opens a copy of the first of two files, types at once, then goes to ``places`` places of each, in turns.

    Raises RequestError for fewer than two files.
    """
    if len(files) < 2:
        raise RequestError("jumps need the stretches of two files")
    with tempfile.TemporaryDirectory(prefix="lacuna-jumping-", ignore_cleanup_errors=True) as folder:
        first, second = (shutil.copyfile(file, Path(folder, file.name)) for file in files[:2])
        return await _jump(first, second, plugin, program, places, advance)


async def _jump(
    first: Path, second: Path, plugin: Plugin, program: str, places: int, advance: Callable[[str], None]
) -> list[Waited]:
    rows = {file: _rows(file.read_text("utf-8").split("\n"), places + 1) for file in (first, second)}
    found = []
    began = time.monotonic()
    async with neovim(program, plugin.init, first) as editor:
        await editor.begin(rows[first][0])
        found.append(await _rewrite(editor, "a cold start", first, rows[first][0], began, COLD_PATIENCE_S))
        advance("a cold start")
        shown = first
        for number in range(1, places + 1):
            for what, file in (("the same file", shown), ("another file", second if shown == first else first)):
                if not rows[file][number:]:
                    continue
                await editor.request("nvim_command", f"edit! {file}" if file != shown else "stopinsert")
                shown = file
                await asyncio.sleep(REST_S)
                row = rows[file].pop(number)
                found.append(await _rewrite(editor, what, file, row, time.monotonic(), PATIENCE_S))
            advance(f"{number} of {places}")
    return found


def rows(found: Sequence[Waited]) -> Iterator[WaitRow]:
    """Yields the waits of each kind of place."""
    for what in dict.fromkeys(one.what for one in found):
        own = [one for one in found if one.what == what]
        waits = sorted(one.seconds * 1e3 for one in own if one.seconds is not None)
        yield WaitRow(what, len(own), len(waits), percentile(waits, 50) / 1e3, percentile(waits, 90) / 1e3)


async def _rewrite(editor: Neovim, what: str, file: Path, row: int, began: float, patience_s: float) -> Waited:
    """Empties a line but for its indentation, waits for a suggestion, and takes the change back."""
    await editor.keys("<Esc>")
    await editor.request("nvim_win_set_cursor", 0, [row + 1, 0])
    await editor.keys("^C")
    seconds = None
    while seconds is None and time.monotonic() - began < patience_s:
        if (await editor.ghost()).strip():
            seconds = round(time.monotonic() - began, 3)
        await asyncio.sleep(LOOK_S)
    await editor.keys("<Esc>u")
    return Waited(what, file.name, row, seconds)


def _rows(lines: Sequence[str], most: int) -> list[int]:
    """Up to ``most`` places of a file, far from each other: indented lines of code, first every second of them."""
    usable = [row for row, line in enumerate(lines) if line[:1].isspace() and len(line.strip()) >= LEAST]
    chosen: list[int] = []
    for row in usable:
        if not chosen or row - chosen[-1] >= FAR:
            chosen.append(row)
    return [*chosen[::2], *chosen[1::2]][:most]
