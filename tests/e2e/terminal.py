"""A real terminal (tmux) with a shell: keys go in, a screen comes out."""

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

BIN = Path(sys.executable).parent
PATIENCE_S = 60.0  # a busy machine takes its time
PROMPT = "hour$ "


class Terminal:
    """One terminal; ``raw`` is the file of all that was written to it."""

    def __init__(self, socket: Path, raw: Path) -> None:
        self._socket = socket
        self._raw = raw

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

    @property
    def raw(self) -> str:
        """All that programs have written, with its escape sequences."""
        return self._raw.read_text(errors="replace")

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

    def wait(self, text: str) -> None:
        """Wait until a text is seen."""
        self.wait_screen(re.escape(text))

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
        terminal.tmux("pipe-pane", f"cat > '{folder / '.raw'}'")
        terminal.wait_end()
        yield terminal
    finally:
        terminal.tmux("kill-server")
