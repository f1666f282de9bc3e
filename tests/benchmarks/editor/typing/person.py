"""A person types stretches of real files in a real Neovim, and takes a suggestion whose first line is what they meant.

It may also end before the line does, with a word. They pause before each line and after each key, and need a moment to
read a suggestion. Indentation is free.
"""

import asyncio
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from tests.benchmarks.editor.typing import processor
from tests.benchmarks.editor.typing.neovim import Neovim, neovim
from tests.benchmarks.editor.typing.stretches import Stretch
from tests.benchmarks.figures import Row, grouped, percentile, ratio
from tests.benchmarks.records import Records

from lacuna_model.commands import output
from lacuna_model.core.errors import RequestError
from lacuna_model.languages.registry import language_for
from lacuna_model.text.diff import num_common
from lacuna_model.text.lines import in_word, indentation

LOOK_S = 0.02  # between two looks at the screen
READ_S = 0.25  # to read a suggestion
TAKEN_S = 0.15  # for the editor to insert it
BEGIN_S = 3.0  # before the first line
READY_S = 120.0


class Plugin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An editor's plugin: its name, its configuration, the key that takes a line, and Lua: is it ready?

    ``servers`` are processes that work for it beside the editor.
    """

    name: str
    init: str
    key: str
    ready: str = "return true"
    servers: tuple[int, ...] = ()


class Pace(msgspec.Struct, frozen=True):
    """Seconds after each key, and before each line."""

    key_s: float = 0.2
    line_s: float = 1.0


class Typed(msgspec.Struct, frozen=True):
    """What one stretch took: its characters, the keys pressed, suggestions shown, right and taken.

    ``unseen`` counts the lines at whose start nothing was shown in the pause; ``waits`` are the seconds from the start
    of the others to their first suggestion. ``wrong`` pairs what was wanted with what was shown. ``cpu_s`` are the
    processor seconds of the editor, of what it has started, and of the plugin's servers.
    """

    plugin: str
    file: str
    language: str
    characters: int
    keys: int
    shown: int
    right: int
    taken: int
    lines: int
    unseen: int
    waits: tuple[float, ...]
    wrong: tuple[tuple[str, str], ...]
    cpu_s: float


def lacuna(plugin: Path, service: int = 0) -> Plugin:
    """Returns this project's plugin, from its folder; ``service`` is the process of its service."""
    init = f"vim.opt.runtimepath:append({str(plugin)!r})\nvim.lsp.enable('lacuna')\n"
    ready = "return (require('lacuna').statusline() or ''):find('ready') ~= nil"
    return Plugin("lacuna", init, "<M-l>", ready, (service,) if service else ())


def described(file: Path) -> Plugin:
    """Returns the plugin that a TOML file describes by the fields of Plugin; raises RequestError if it is none."""
    try:
        return msgspec.toml.decode(file.read_bytes(), type=Plugin)
    except (OSError, msgspec.MsgspecError) as error:
        raise RequestError(f"{file}: {error}") from None


async def type_all(
    stretches: Sequence[Stretch], plugins: Sequence[Plugin], program: str, pace: Pace, records: Records[Typed]
) -> list[Typed]:
    """Types every stretch with each plugin in turn."""
    with output.counting("stretches", len(stretches) * len(plugins)) as advance:
        for stretch in stretches:
            for plugin in plugins:
                with tempfile.TemporaryDirectory(prefix="lacuna-typing-", ignore_cleanup_errors=True) as folder:
                    file = Path(folder) / stretch.path.name
                    file.write_text("\n".join((*stretch.above, "", *stretch.below)))
                    async with neovim(program, plugin.init, file) as editor:
                        await _ready(editor, plugin)
                        records.add(await _Person(editor, plugin, pace, stretch).type())
                advance()
    return records.found


async def _ready(editor: Neovim, plugin: Plugin) -> None:
    until = time.monotonic() + READY_S
    while time.monotonic() < until and not await editor.lua(plugin.ready):
        await asyncio.sleep(0.5)


@dataclass(slots=True)
class _Person:
    editor: Neovim
    plugin: Plugin
    pace: Pace
    stretch: Stretch
    characters: int = 0
    keys: int = 0
    shown: int = 0
    right: int = 0
    taken: int = 0
    lines: int = 0
    waits: list[float] = field(default_factory=list)
    wrong: list[tuple[str, str]] = field(default_factory=list)
    seen: str = ""  # the suggestion that is on the screen

    async def type(self) -> Typed:
        """Types the stretch."""
        first = len(self.stretch.above)
        await self.editor.begin(first)
        await asyncio.sleep(BEGIN_S)
        programs = (self.editor.pid, *self.plugin.servers)
        before = processor.seconds(programs)
        for number, line in enumerate(self.stretch.lines):
            if number:
                await self._press("<CR>")
                self.characters += 1
            if line.strip():
                await self._type_line(first + number, line)
        language = language_for(self.stretch.path.name)
        return Typed(
            self.plugin.name,
            self.stretch.path.name,
            language.name if language is not None else "",
            self.characters,
            self.keys,
            self.shown,
            self.right,
            self.taken,
            self.lines,
            self.lines - len(self.waits),
            tuple(round(wait, 3) for wait in self.waits),
            tuple(self.wrong),
            round(processor.seconds(programs) - before, 2),
        )

    async def _type_line(self, row: int, line: str) -> None:
        indent = indentation(line)
        if indent:
            await self.editor.keys(_keys(indent))
        body = line[len(indent) :]
        self.characters += len(body)
        self.lines += 1
        began, count = time.monotonic(), len(self.waits)
        wanted = await self._look(body, self.pace.line_s, began)
        del self.waits[count + 1 :]
        while body:
            taken = await self._takes(row, line, body) if wanted else 0
            if not taken:
                await self._press(_keys(body[0]))
                taken = 1
            body = body[taken:]
            wanted = bool(body) and await self._look(body, self.pace.key_s)
        if await self.editor.line(row) != line:
            await self.editor.mend(row, line)

    async def _press(self, key: str) -> None:
        await self.editor.keys(key)
        self.keys += 1

    async def _takes(self, row: int, line: str, rest: str) -> int:
        """Reads a suggestion again, and takes it if it still is what is meant; returns its characters."""
        await asyncio.sleep(READ_S)
        text = await self.editor.ghost()
        if text != self.seen or not _is_meant(text, rest):
            return 0
        await self._press(self.plugin.key)
        self.taken += 1
        self.seen = ""
        await asyncio.sleep(TAKEN_S)
        now = line[: len(line) - len(rest) + len(text)]
        if await self.editor.line(row) != now:
            await self.editor.mend(row, now)
        return len(text)

    async def _look(self, rest: str, seconds: float, began: float | None = None) -> bool:
        """Looks at the screen for some seconds, or until it shows the ``rest`` of the line; counts what is new."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            text = await self.editor.ghost()
            if text.strip() and text != self.seen and not self.seen.endswith(text):
                self.shown += 1
                self.right += _is_meant(text, rest)
                if not _is_meant(text, rest):
                    self.wrong.append((rest, text))
                if began is not None:
                    self.waits.append(time.monotonic() - began)
            self.seen = text
            if len(text) > 1 and _is_meant(text, rest):
                return True
            await asyncio.sleep(LOOK_S)
        return False


def _is_meant(shown: str, rest: str) -> bool:
    """Whether what is shown is the ``rest`` of a line, or the beginning of it up to the end of a word."""
    ends = not in_word(rest[len(shown) : len(shown) + 1])
    return shown == rest or (bool(shown.strip()) and rest.startswith(shown) and ends)


def _wrong(wanted: str, shown: str) -> int:
    """How many characters of what is shown stand behind the common beginning with what is wanted."""
    return len(shown) - num_common(wanted, shown)


def _keys(text: str) -> str:
    """Returns the keys that type a text."""
    return re.sub(r"[<\t]", lambda match: {"<": "<lt>", "\t": "<C-v><Tab>"}[match[0]], text)


def rows(found: Sequence[Typed]) -> list[Row]:
    """The sums of each plugin by language and over all; *saved*, *wrong* and *cpu s* are for 100 characters typed."""
    return [
        {"plugin": plugin, "what": language, **_sums(own)}
        for plugin in dict.fromkeys(one.plugin for one in found)
        for language, own in grouped([one for one in found if one.plugin == plugin], lambda one: one.language).items()
    ]


def _sums(own: Sequence[Typed]) -> Row:
    characters, waits = sum(one.characters for one in own), [wait for one in own for wait in one.waits]
    return {
        "characters": characters,
        "saved": 100 - 100 * ratio(sum(one.keys for one in own), characters),
        "wrong": 100 * ratio(sum(_wrong(*pair) for one in own for pair in one.wrong), characters),
        "cpu s": 100 * ratio(sum(one.cpu_s for one in own), characters),
        "shown": sum(one.shown for one in own),
        "right": sum(one.right for one in own),
        "taken": sum(one.taken for one in own),
        "lines": sum(one.lines for one in own),
        "unseen": sum(one.unseen for one in own),
        "wait p50": percentile(waits, 50),
        "p90": percentile(waits, 90),
    }
