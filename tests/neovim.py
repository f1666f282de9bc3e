"""Drives a Neovim without a screen, in its own protocol (msgpack-RPC)."""

import asyncio
import itertools
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgpack

from lacuna_model.core.errors import RequestError

BIN = Path(sys.executable).parent
UI = {"ext_linegrid": True, "ext_hlstate": True, "rgb": True}


class Session:
    """One Neovim without a screen; keys are in Vim's notation, such as ``ihello<Esc>``."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.folder = folder
        self._process = process
        self._ids = itertools.count()
        self._answers: dict[int, asyncio.Future[Any]] = {}

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    async def request(self, method: str, *arguments: object) -> Any:
        """Call a function of Neovim's API and return its result; raises RequestError where that fails."""
        assert self._process.stdin is not None
        answer = asyncio.get_running_loop().create_future()
        number = next(self._ids)
        self._answers[number] = answer
        self._process.stdin.write(msgpack.packb([0, number, method, arguments]))
        return await asyncio.wait_for(answer, 60)

    async def keys(self, keys: str) -> None:
        """Press keys, without waiting for their effect."""
        await self.request("nvim_input", keys)

    async def lua(self, code: str, *arguments: object) -> Any:
        """Run Lua and return its result."""
        return await self.request("nvim_exec_lua", code, arguments)

    async def quit(self) -> None:
        """Quit Neovim, even if it waits for input."""
        assert self._process.stdin is not None
        await self.keys("<C-c><Esc>")
        self._process.stdin.write(msgpack.packb([2, "nvim_command", ["qall!"]]))
        try:
            await asyncio.wait_for(self._process.wait(), 30)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def read(self) -> None:
        """Handle all messages until Neovim ends."""
        assert self._process.stdout is not None
        unpacker = msgpack.Unpacker(strict_map_key=False, ext_hook=lambda code, data: (code, data))
        while data := await self._process.stdout.read(65536):
            unpacker.feed(data)
            for kind, *message in unpacker:
                if kind == 1:
                    self._answer(*message)
                elif message[0] == "redraw":
                    for name, *calls in message[1]:
                        for call in calls:
                            getattr(self, f"_on_{name}", lambda *_: None)(*call)
        for waiting in self._answers.values():
            waiting.cancel()

    def _answer(self, number: int, error: Any, result: Any) -> None:
        answer = self._answers.pop(number)
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(RequestError(f"Neovim: {error[1]}"))


Editor = TypeVar("Editor", bound=Session)


@asynccontextmanager
async def started(
    kind: Callable[[asyncio.subprocess.Process, Path], Editor],
    program: str,
    folder: Path,
    init: str,
    environment: Mapping[str, str],
    *,
    size: tuple[int, int],
    file: str = "",
) -> AsyncIterator[Editor]:
    """Start Neovim in a folder with this configuration, and a file; raises RequestError if it cannot start."""
    home = folder / ".home"
    home.mkdir()
    (home / "init.lua").write_text(init)
    own = {name: str(home) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    try:
        process = await asyncio.create_subprocess_exec(
            *(program, "--embed", "-n", "-i", "NONE", "-u", str(home / "init.lua"), *filter(None, [file])),
            cwd=folder,
            env={**environment, **own, "PATH": f"{BIN}{os.pathsep}{environment['PATH']}"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise RequestError(f"{program}: {error.strerror}") from None
    editor = kind(process, folder)
    reading = asyncio.create_task(editor.read())
    try:
        await editor.request("nvim_ui_attach", *size, UI)
        yield editor
    finally:
        await editor.quit()
        await reading
