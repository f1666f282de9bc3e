"""The service of the language server's tests, and the editors that use it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.lsp.conftest import daemon, language_server, own_daemon, shared_daemon
from tests.lsp.editor import until
from tests.lsp.service import Daemon

from .neovim import AT_ONCE, Neovim
from .neovim import running as running_neovim
from .vscode import VSCode
from .vscode import running as running_vscode

__all__ = ["daemon", "language_server", "own_daemon", "shared_daemon"]


@pytest_asyncio.fixture
async def nvim(daemon: Daemon, language_server: Path, tmp_path: Path) -> AsyncIterator[Neovim]:
    """A Neovim that asks for suggestions without a pause, with a language server that many tests share."""
    shared = f"vim.lsp.config('lacuna', {{ cmd = vim.lsp.rpc.connect('{language_server}') }})"
    async for nvim in begun(daemon, tmp_path, f"{AT_ONCE}\n{shared}"):
        yield nvim


async def begun(daemon: Daemon, folder: Path, init: str = AT_ONCE) -> AsyncIterator[Neovim]:
    before = daemon.sessions
    async with running_neovim(daemon.environment, folder, init) as nvim:
        yield nvim
    await until(lambda: daemon.sessions <= before)  # the last requests must not count for the next test


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def window(shared_daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[VSCode]:
    """A window whose first editor is complete."""
    async with running_vscode(tmp_path_factory.mktemp("vscode"), shared_daemon.environment) as code:
        await code.status("ready")
        # VS Code creates parts of its first editor when it is idle. On a busy machine, typing sends no request yet.
        shared_daemon.plan()
        await code.open("first.py", "a = ¦\n")
        await code.press("Alt+\\")
        await code.shows("a = «filled»")
        await code.close()
        yield code


@pytest_asyncio.fixture(loop_scope="module")
async def code(window: VSCode) -> AsyncIterator[VSCode]:
    """A window without open editors, with the initial settings."""
    await window.status("ready, .*, suggesting while you type")
    yield window
    await window.reset()
    await window.close()
