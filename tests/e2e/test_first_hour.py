"""The first hour with Lacuna in a real terminal (tmux), walked through as a user walks it: what they must see."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.text import Text
from tests.e2e.test_lsp import environment

__all__ = ["environment"]

BIN = Path(sys.executable).parent
PATIENCE_S = 60.0  # a busy machine takes its time
PROMPT = "hour$ "


class Terminal:
    """One terminal; ``raw`` is the file of all that programs have written to it, with their escape sequences."""

    def __init__(self, socket: Path, raw: Path) -> None:
        self._socket, self.raw = socket, raw

    def tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    @property
    def screen(self) -> str:
        """What is seen, in lines."""
        return self.tmux("capture-pane", "-p")

    @property
    def colours(self) -> set[int]:
        """The numbers of the terminal's own colours that are seen as text."""
        text = Text.from_ansi(self.tmux("capture-pane", "-ep"))
        styles = (span.style for span in text.spans if not isinstance(span.style, str))
        return {style.color.number for style in styles if style.color and style.color.number is not None}

    def press(self, key: str) -> None:
        """Press a key by its name in tmux, such as ``Enter`` and ``C-c``."""
        self.tmux("send-keys", key)

    def run(self, line: str) -> None:
        """Type a command on an empty screen."""
        self.press("C-l")
        self.wait_screen(rf"\A{re.escape(PROMPT.strip())}\s*\Z")
        self.tmux("clear-history")
        self.tmux("send-keys", "-l", line)
        self.wait_screen(rf"^{re.escape(PROMPT.strip())} +\S")  # else the bare prompt looks like the command's end
        self.press("Enter")

    def wait_end(self) -> None:
        """Wait until the command has ended."""
        self.wait_screen(rf"^{re.escape(PROMPT.strip())}\s*\Z")

    def wait_screen(self, pattern: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(pattern, screen := self.screen, re.MULTILINE):
            assert time.monotonic() < deadline, f"{pattern!r} is not on the screen:\n{screen}"
            time.sleep(0.05)


@contextmanager
def running(folder: Path, environment: Mapping[str, str], columns: int, rows: int = 40) -> Iterator[Terminal]:
    """A shell in a folder, in a terminal of this size."""
    if shutil.which("tmux") is None:
        pytest.skip("make test installs tmux")
    terminal = Terminal(Path(environment["XDG_RUNTIME_DIR"]) / "tmux", folder / ".raw")
    own = {"PS1": PROMPT, "PATH": f"{BIN}:{environment['PATH']}", "COLORTERM": "truecolor", "HISTFILE": ""}
    settings = (f"{name}={value}" for name, value in {**environment, **own}.items())
    shell = ["env", "-i", *settings, "TERM=screen-256color", "bash", "--norc", "--noprofile"]
    terminal.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(folder), *shell)
    try:
        terminal.tmux("pipe-pane", f"cat > '{terminal.raw}'")
        terminal.wait_end()
        yield terminal
    finally:
        terminal.tmux("kill-server")


READABLE = {1, 2, 5, 6}  # red, green, magenta, cyan
AREA = "def area(width, height):\n    return width * <<fill>>\n\n\nprint(area(2, 3))\n"


def test_in_the_terminal(environment: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "area.py").write_text(AREA)
    with running(tmp_path, environment, columns=60) as screen:
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
            screen.wait_screen("Change 1 place in 1 file[?]")
            assert "+show(area(2, 3))" in screen.screen
            assert screen.colours <= READABLE
            screen.press(answer)
            screen.press("Enter")
            screen.wait_end()
        assert "show(area(2, 3))" in (tmp_path / "area.py").read_text()

        screen.run("lacuna serve --port 0")
        screen.wait_screen("Ctrl-C stops")
        assert "\x1b]8;" in screen.raw.read_text(errors="replace")
        screen.press("C-c")
        screen.wait_screen("reason=SIGINT")
        screen.wait_end()
