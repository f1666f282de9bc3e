"""A real Neovim with the plugin. The tests act as its user interface: they send keys and receive a screen of cells."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.lsp.editor import until
from tests.neovim import BIN, Session, started

PLUGIN = Path(__file__).parents[2] / "editor-clients/neovim"
GROUPS = ("LacunaSuggestion", "LacunaCount", "LacunaMark", "LacunaError")
COLUMNS, ROWS = 80, 24
AT_ONCE = "vim.lsp.config('lacuna', { settings = { lacuna = { debounce = false } } })"


class Neovim(Session):
    """One Neovim and its screen."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        super().__init__(process, folder)
        self._groups: dict[int, set[str]] = {0: set()}
        self._cells = [[(" ", 0)] * COLUMNS for _ in range(ROWS)]  # as drawn so far
        self._seen = [row.copy() for row in self._cells]  # as the user sees it: at the end of a redraw

    # --- input

    async def command(self, line: str) -> None:
        """Type a command, in normal mode."""
        await self.keys(":" + line.replace("<", "<lt>") + "<CR>")

    async def start(self, file: str, text: str, *, keys: str = "") -> Path:
        """Open a file that has this text, wait for the engine and press keys."""
        path = self.folder / file
        path.write_bytes(text.encode())
        await self.command(f"edit {file}")
        await self.wait("Lacuna: ready")
        await self.keys(keys)
        return path

    # --- output

    @property
    def screen(self) -> str:
        """The text on the screen, without trailing blanks."""
        return "\n".join("".join(text for text, _ in row).rstrip() for row in self._seen)

    def shows(self, text: str) -> bool:
        return text in self.screen

    def drawn(self, group: str) -> str:
        """The text on the screen that has a highlight group, with its lines joined."""
        rows = ("".join(text for text, id in row if group in self._groups[id]) for row in self._seen)
        return "\n".join(filter(None, rows))

    @property
    def ghost(self) -> str:
        return self.drawn("LacunaSuggestion")

    async def wait(self, text: str) -> None:
        """Wait until the screen shows a text."""
        try:
            await until(lambda: self.shows(text))
        except AssertionError:
            raise AssertionError(f"{text!r} is not on the screen:\n{self.screen}") from None

    async def told(self, text: str) -> None:
        """Wait until Neovim's messages hold a text; on the screen, another message may take its place at once."""
        for _ in range(600):
            if text in str(await self.lua("return vim.fn.execute('messages')")):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"{text!r} is not among the messages; the screen:\n{self.screen}")

    async def gone(self, text: str) -> None:
        """Wait until the screen does not show a text."""
        await until(lambda: not self.shows(text))

    async def wait_ghost(self, text: str) -> None:
        """Wait until the screen shows exactly this ghost text. An empty text means no ghost text.

        Neovim handles the keys that were pressed before it answers, so that the ghost text of an earlier place is gone.
        """
        await self.lua("vim.cmd.redraw()")
        try:
            await until(lambda: self.ghost == text)
        except AssertionError:
            raise AssertionError(f"the ghost text is {self.ghost!r}, not {text!r}:\n{self.screen}") from None

    async def lines(self) -> list[str]:
        """The text of the current buffer."""
        return list(await self.request("nvim_buf_get_lines", 0, 0, -1, True))

    async def wait_lines(self, *lines: str) -> None:
        """Wait until the current buffer has these lines."""
        for _ in range(3000):
            if (found := await self.lines()) == list(lines):
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"the text is {found}, not {list(lines)}")

    async def saved(self, file: Path) -> str:
        """Write all buffers with ``:wall``, and return the text of a file on disk."""
        await self.keys("<Esc>")
        await self.request("nvim_command", "silent wall")
        return file.read_text()

    # --- messages

    def _on_flush(self) -> None:
        self._seen = [row.copy() for row in self._cells]

    def _on_hl_attr_define(self, id: int, rgb: object, cterm: object, infos: list[dict[str, Any]]) -> None:
        self._groups[id] = {info.get("hi_name", "") for info in infos}

    def _on_grid_line(self, grid: int, row: int, column: int, cells: list[list[Any]], wrap: bool) -> None:
        group = 0
        for text, *more in cells:
            group = more[0] if more else group
            for _ in range(more[1] if len(more) > 1 else 1):
                self._cells[row][column] = (text, group)
                column += 1

    def _on_grid_clear(self, grid: int) -> None:
        for row in self._cells:
            row[:] = [(" ", 0)] * COLUMNS

    def _on_grid_scroll(self, grid: int, top: int, bottom: int, left: int, right: int, rows: int, columns: int) -> None:
        order = range(top, bottom) if rows > 0 else range(bottom - 1, top - 1, -1)
        for row in order:
            if top <= row + rows < bottom:
                self._cells[row][left:right] = self._cells[row + rows][left:right]


@asynccontextmanager
async def running(environment: Mapping[str, str], folder: Path, init: str = "") -> AsyncIterator[Neovim]:
    """Start Neovim in a folder, with the plugin and the configuration of its README. It reads ``init`` before these."""
    # On the screen, a group that links to another one looks like that one. So every group gets its own colour.
    colours = "".join(
        f"vim.api.nvim_set_hl(0, '{group}', {{ fg = {number} }})\n" for number, group in enumerate(GROUPS, start=1)
    )
    own = (
        f"{colours}{init}\nvim.opt.runtimepath:append({str(PLUGIN)!r})\nvim.lsp.enable('lacuna')\n"
        "vim.o.statusline = '%f %= %{%v:lua.require(\"lacuna\").statusline()%}'\n"
    )
    async with started(Neovim, str(BIN / "nvim"), folder, own, environment, size=(COLUMNS, ROWS)) as neovim:
        yield neovim
