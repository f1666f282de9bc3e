"""The first hour with Lacuna, walked through as a user walks it: in the terminal, in Neovim and in VS Code.

Asserted is what a user must see; pictures of it are kept as artefacts. The playground's part is in
``tests/server/playground/test_widths.py``.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from playwright.async_api import expect
from tests.e2e.test_lsp import environment
from tests.editor_clients import neovim, vscode
from tests.lsp.conftest import own_daemon
from tests.lsp.editor import until
from tests.lsp.service import Daemon
from tests.server.playground.browser import ARTIFACTS

from . import terminal

__all__ = ["environment", "own_daemon"]

READABLE = {1, 2, 5, 6}  # red, green, magenta, cyan
AREA = "def area(width, height):\n    return width * <<fill>>\n\n\nprint(area(2, 3))\n"
UNREACHABLE = "start the engine with"  # some editors hide the quotes of what follows


async def test_in_the_terminal(environment: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "area.py").write_text(AREA)
    async with terminal.running(tmp_path, environment, columns=60) as screen:
        screen.run("lacuna refactor --list-recipes")
        screen.wait_end()
        screen.keep("1-recipes")
        recipes = ("annotations", "docstrings", "logging", "parameter")
        assert [name for name in recipes if f"\n{name} " not in screen.screen] == []

        screen.run("lacuna fill area.py --watch --no-workspace --max-tokens 12")
        screen.wait_screen(r"^\w+: \d+ tokens in \d+ passes")
        screen.wait_end()
        screen.keep("2-fill")
        assert screen.screen.count("def area") == 1
        assert screen.screen.count("print(area(2, 3))") == 1
        assert screen.colours <= READABLE

        screen.run("lacuna refactor --lang python 'print($A)' 'show($A)' area.py")
        screen.wait("Change 1 place in 1 file?")
        screen.keep("3-refactor")
        assert "+show(area(2, 3))" in screen.screen
        assert screen.colours <= READABLE
        screen.press("n")
        screen.press("Enter")
        screen.wait_end()

        screen.run("lacuna serve --port 0")
        screen.wait("(Ctrl-C stops)")
        screen.keep("4-serve")
        assert "\x1b]8;" in screen.raw
        screen.press("C-c")
        screen.wait("reason=SIGINT")
        screen.wait_end()


async def test_in_neovim(own_daemon: Daemon, tmp_path: Path) -> None:
    own_daemon.plan(fills=[["height"]])
    url = own_daemon.running.url
    own_daemon.kill()
    engine = f"vim.lsp.config('lacuna', {{ cmd = {{ 'lacuna-lsp', '--engine', '{url}' }} }})"

    def keep(name: str) -> None:
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        (ARTIFACTS / f"nvim-{name}.txt").write_text(nvim.screen)

    async with neovim.running(own_daemon.environment, tmp_path, engine) as nvim:
        file = tmp_path / "area.py"
        file.write_text(AREA)
        await nvim.command("edit area.py")
        await until(lambda: "Lacuna: unreachable" in nvim.drawn("LacunaError"))
        await nvim.command("checkhealth lacuna")
        await nvim.wait(UNREACHABLE)
        keep("1-checkhealth")
        await nvim.command("tabonly | edit area.py")
        own_daemon.start(int(url.rpartition(":")[2]))
        await nvim.wait("Lacuna: ready")
        await nvim.command("Lacuna fill")
        await nvim.wait("width * height")
        await nvim.wait("Lacuna: 1 change made")
        keep("2-fill")
        assert nvim.drawn("LacunaError") == ""
        await nvim.command("Lacuna status")
        await nvim.wait("held back as unsure")
        keep("3-status")
        await nvim.command("Lacuna toggle")
        await nvim.command("Lacuna status")
        await nvim.wait("Lacuna: off, ")
        keep("4-off")
        own_daemon.kill()
        await until(lambda: "Lacuna: lost" in nvim.drawn("LacunaError"))
        keep("5-lost")


async def test_in_vs_code(own_daemon: Daemon, tmp_path: Path) -> None:
    own_daemon.plan(fills=[["height"]])
    url = own_daemon.running.url
    own_daemon.kill()
    engine = {"lacuna.command": [*vscode.SERVER, "--engine", url]}
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    async with vscode.running(tmp_path, own_daemon.environment, settings=engine) as code:
        status = code.page.locator('[id="lacuna.lacuna.lacuna"]')

        async def keep(name: str) -> None:
            await code.page.screenshot(path=ARTIFACTS / f"vscode-{name}.png")

        await code.status("unreachable")
        await code.open("area.py", AREA)
        await expect(status).to_contain_class("error-kind")
        await code.run("Lacuna: Status and Actions")
        await expect(code.entry).to_have_attribute("placeholder", re.compile(f"^{UNREACHABLE}"))
        await keep("1-unreachable")
        await code.press("Escape")
        own_daemon.start(int(url.rpartition(":")[2]))
        await code.status("ready")
        await expect(status).not_to_contain_class("error-kind")
        await code.press("Control+Alt+l", "f")
        await expect(code.page.get_by_text("Lacuna: 1 place filled")).to_be_visible()
        await keep("2-filled")
        own_daemon.kill()
        await code.status("lost")
        await expect(status).to_contain_class("error-kind")
        await keep("3-lost")
