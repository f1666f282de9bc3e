"""A real Neovim for a measurement: keys go in, ghost text and lines come out."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.neovim import Session, started

SIZE = 120, 40
# The suggestion at the cursor, as any plugin draws it: virtual text of the cursor's line, without counters.
_GHOST = """
local row, found = vim.api.nvim_win_get_cursor(0)[1] - 1, {}
for _, space in pairs(vim.api.nvim_get_namespaces()) do
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, {row, 0}, {row, -1}, {details = true})) do
    local text = ''
    for _, chunk in ipairs(mark[4].virt_text or {}) do
      if chunk[2] ~= 'LacunaCount' and chunk[2] ~= 'llama_hl_fim_info' then text = text .. chunk[1] end
    end
    if text ~= '' then table.insert(found, text) end
  end
end
return found[1] or ''
"""
# A person's indentation is given, so no plugin of Neovim's own may add to it.
_PLAIN = "set noautoindent nosmartindent nocindent indentexpr= noexpandtab indentkeys= formatoptions="


class Neovim(Session):
    """One Neovim without a screen."""

    async def ghost(self) -> str:
        """Returns the first line of the suggestion that is drawn at the cursor; "" for none."""
        return str(await self.lua(_GHOST))

    async def begin(self, row: int) -> None:
        """Begins to insert at the start of a row, counted from 0."""
        await self.request("nvim_command", _PLAIN)
        await self.request("nvim_win_set_cursor", 0, [row + 1, 0])
        await self.keys("i")

    async def line(self, row: int) -> str:
        """Returns a line of the buffer."""
        return str((await self.request("nvim_buf_get_lines", 0, row, row + 1, True))[0])

    async def mend(self, row: int, line: str) -> None:
        """Puts a line of the buffer right, and the cursor to its end."""
        await self.request("nvim_buf_set_lines", 0, row, row + 1, True, [line])
        await self.request("nvim_win_set_cursor", 0, [row + 1, len(line.encode())])


@asynccontextmanager
async def neovim(program: str, init: str, file: Path) -> AsyncIterator[Neovim]:
    """A Neovim with the Lua configuration ``init`` that has opened a file; raises RequestError if it cannot start."""
    own = os.environ | {"XDG_STATE_HOME": str(file.parent / ".home")}
    async with started(Neovim, program, file.parent, init, own, size=SIZE, file=str(file)) as editor:
        yield editor
