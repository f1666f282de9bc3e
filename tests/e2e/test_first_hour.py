"""The first hour with Lacuna in the terminal, walked through as a user walks it: what they must see."""

from collections.abc import Mapping
from pathlib import Path

from tests.e2e.test_lsp import environment

from . import terminal

__all__ = ["environment"]

READABLE = {1, 2, 5, 6}  # red, green, magenta, cyan
AREA = "def area(width, height):\n    return width * <<fill>>\n\n\nprint(area(2, 3))\n"


def test_in_the_terminal(environment: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "area.py").write_text(AREA)
    with terminal.running(tmp_path, environment, columns=60) as screen:
        screen.run("lacuna refactor --list-recipes")
        screen.wait_end()
        recipes = ("annotations", "docstrings", "logging", "parameter")
        assert [name for name in recipes if f"\n{name} " not in screen.screen] == []

        screen.run("lacuna fill area.py --watch --no-workspace --max-tokens 12")
        screen.wait_screen(r"^\w+: \d+ tokens in \d+ passes")
        screen.wait_end()
        assert screen.screen.count("def area") == 1
        assert screen.screen.count("print(area(2, 3))") == 1
        assert screen.colours <= READABLE

        for answer in ("Enter", "y"):  # the first one is no answer
            assert "show" not in (tmp_path / "area.py").read_text()
            screen.run("lacuna refactor --lang python 'print($A)' 'show($A)' area.py")
            screen.wait("Change 1 place in 1 file?")
            assert "+show(area(2, 3))" in screen.screen
            assert screen.colours <= READABLE
            screen.press(answer)
            screen.press("Enter")
            screen.wait_end()
        assert "show(area(2, 3))" in (tmp_path / "area.py").read_text()

        screen.run("lacuna serve --port 0")
        screen.wait("(Ctrl-C stops)")
        assert "\x1b]8;" in screen.raw
        screen.press("C-c")
        screen.wait("reason=SIGINT")
        screen.wait_end()
