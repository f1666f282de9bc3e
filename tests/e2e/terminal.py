"""A real terminal (tmux) with a shell: keys go in, a screen comes out, and pictures of it on white and on black."""

import io
import re
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import async_playwright
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME
from rich.text import Text
from tests.server.playground.browser import ARTIFACTS, CHROMIUM

BIN = Path(sys.executable).parent
THEMES = {"white": DEFAULT_TERMINAL_THEME, "black": SVG_EXPORT_THEME}
PATIENCE_S = 60.0  # a busy machine takes its time
PROMPT = "hour$ "


class Terminal:
    """One terminal; ``raw`` is the file of all that was written to it."""

    def __init__(self, socket: Path, raw: Path, columns: int) -> None:
        self._socket = socket
        self._columns = columns
        self._raw = raw
        self._pictures: dict[str, Text] = {}

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

    def keep(self, name: str) -> None:
        """Take a picture."""
        self._pictures[name] = Text.from_ansi(self.tmux("capture-pane", "-ep"))

    async def develop(self) -> None:
        """Write all pictures, on white and on black."""
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = await browser.new_page(viewport={"width": 9 * self._columns + 40, "height": 400})
            for name, text in self._pictures.items():
                for ground, theme in THEMES.items():
                    console = Console(record=True, width=self._columns, file=io.StringIO())
                    console.print(text)
                    await page.set_content(console.export_html(theme=theme))
                    await page.screenshot(path=ARTIFACTS / f"terminal-{name}-{ground}.png", full_page=True)
            await browser.close()


@asynccontextmanager
async def running(
    folder: Path, environment: Mapping[str, str], columns: int = 80, rows: int = 40
) -> AsyncIterator[Terminal]:
    """A shell in a folder, in a terminal of this size; its pictures are written at the end."""
    if shutil.which("tmux") is None:
        pytest.skip("make test installs tmux")
    terminal = Terminal(Path(environment["XDG_RUNTIME_DIR"]) / "tmux", folder / ".raw", columns)
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
        await terminal.develop()
