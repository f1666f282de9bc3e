"""A real Neovim for a measurement: keys go in, ghost text and lines come out."""

import asyncio
import itertools
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lacuna_model.core.errors import RequestError

COLUMNS, ROWS = 120, 40
ANSWER_S = 60.0
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


class Neovim:
    """One Neovim without a screen."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ids = itertools.count()
        self._answers: dict[int, asyncio.Future[Any]] = {}

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    async def request(self, method: str, *arguments: object) -> Any:
        """Calls a function of Neovim's API and returns its result; raises RequestError where that fails."""
        import msgpack

        assert self._process.stdin is not None
        answer = asyncio.get_running_loop().create_future()
        number = next(self._ids)
        self._answers[number] = answer
        self._process.stdin.write(msgpack.packb([0, number, method, arguments]))
        return await asyncio.wait_for(answer, ANSWER_S)

    async def keys(self, keys: str) -> None:
        """Presses keys, in Vim's notation."""
        await self.request("nvim_input", keys)

    async def lua(self, code: str) -> Any:
        """Runs Lua and returns its result."""
        return await self.request("nvim_exec_lua", code, [])

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

    async def read(self) -> None:
        """Handles Neovim's answers until it ends."""
        import msgpack

        assert self._process.stdout is not None
        unpacker = msgpack.Unpacker(strict_map_key=False, ext_hook=lambda code, data: (code, data))
        while data := await self._process.stdout.read(1 << 16):
            unpacker.feed(data)
            for kind, *message in unpacker:
                if kind == 1:
                    self._answered(*message)
        for waiting in self._answers.values():
            waiting.cancel()

    def _answered(self, number: int, error: Any, result: Any) -> None:
        answer = self._answers.pop(number)
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(RequestError(f"Neovim: {error[1]}"))

    async def quit(self) -> None:
        """Ends Neovim."""
        import msgpack

        assert self._process.stdin is not None
        self._process.stdin.write(msgpack.packb([2, "nvim_command", ["qall!"]]))
        try:
            await asyncio.wait_for(self._process.wait(), 10)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def neovim(program: str, init: str, file: Path) -> AsyncIterator[Neovim]:
    """A Neovim with the Lua configuration ``init`` that has opened a file; raises RequestError if it cannot start."""
    try:
        import msgpack  # noqa: F401  # part of the test extras
    except ImportError:
        raise RequestError("Neovim is driven through msgpack: pip install 'lacuna-code[test]'") from None
    home = file.parent / ".home"
    home.mkdir(exist_ok=True)
    (home / "init.lua").write_text(init)
    own = {"XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home), "XDG_STATE_HOME": str(home)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    try:
        process = await asyncio.create_subprocess_exec(
            *(program, "--embed", "-n", "-i", "NONE", "-u", str(home / "init.lua"), str(file)),
            cwd=file.parent,
            env={**os.environ, **own, "PATH": path},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise RequestError(f"{program}: {error.strerror}") from None
    one = Neovim(process)
    reading = asyncio.create_task(one.read())
    try:
        await one.request("nvim_ui_attach", COLUMNS, ROWS, {"rgb": True, "ext_linegrid": True})
        yield one
    finally:
        await one.quit()
        await reading
