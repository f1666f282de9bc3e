"""The first hour with Lacuna, walked through as a user walks it: in the terminal, in Neovim and in VS Code.

Asserted is what a user must see; pictures of it are kept as artefacts. The playground's part is in
``tests/server/playground/test_widths.py``.
"""

from collections.abc import Mapping
from pathlib import Path

from tests.e2e.test_lsp import environment
from tests.lsp.conftest import own_daemon

from . import terminal

__all__ = ["environment", "own_daemon"]

READABLE = {1, 2, 5, 6}  # red, green, magenta, cyan
AREA = "def area(width, height):\n    return width * <<fill>>\n\n\nprint(area(2, 3))\n"


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
