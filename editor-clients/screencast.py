"""Records the README's screencast: the real model in a real VS Code and in the playground, driven as in the tests.

``make screencast`` writes ``editor-clients/vscode/screencast.webp``. Only the files and the typed text are prepared:
every suggestion comes from the model during the recording. Every frame is shown for as long as it was on the screen;
the last one of a scene is shown longer.
"""

import asyncio
import base64
import io
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from PIL import Image, ImageDraw, ImageFont
from playwright.async_api import Page, ViewportSize, async_playwright, expect
from tests.e2e.test_lsp import without_service
from tests.editor_clients.vscode import SERVER, VSCode, running
from tests.server.playground.browser import CHROMIUM

from lacuna_server.client.lifecycle import Running

TARGET = Path(__file__).with_name("vscode") / "screencast.webp"
SIZE: ViewportSize = {"width": 860, "height": 520}
LOOK = {
    "breadcrumbs.enabled": False,
    "editor.cursorBlinking": "solid",
    "editor.folding": False,
    "editor.fontFamily": "'DejaVu Sans Mono', monospace",
    "editor.fontSize": 16,
    "editor.guides.indentation": False,
    "editor.lightbulb.enabled": "off",
    "editor.lineHeight": 23,
    "editor.lineNumbers": "off",
    "editor.occurrencesHighlight": "off",
    "editor.overviewRulerBorder": False,
    "editor.renderLineHighlight": "none",
    "editor.scrollBeyondLastLine": False,
    "editor.scrollbar.horizontal": "hidden",
    "editor.scrollbar.vertical": "hidden",
    "editor.stickyScroll.enabled": False,
    "editor.hideCursorInOverviewRuler": True,
    "editor.hover.enabled": "off",
    "editor.minimap.enabled": False,
    "editor.quickSuggestions": {"other": "off"},
    "editor.suggestOnTriggerCharacters": False,
    "remote.autoForwardPorts": False,  # VS Code in a browser offers to open the service's port
    "window.commandCenter": False,
    "window.customTitleBarVisibility": "never",
    "window.menuBarVisibility": "hidden",
    "workbench.activityBar.location": "hidden",
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.editor.editorActionsLocation": "hidden",
    "workbench.layoutControl.enabled": False,
}
KEY_MS, SETTLING_S, READING_S, PICTURES_A_SECOND = 50, 0.6, 1.4, 15
CAPTION_HEIGHT, CAPTION_SIZE = 44, 17
GROUND, KEY, INK = "#131318", "#34343f", "#e8e8ef"
FONT = "DejaVuSans.ttf"  # a system font that Pillow finds

EXTREMES = '''def minimum(values):
    """The smallest of some values, None where there are none."""
    if not values:
        return None
    smallest = values[0]
    for value in values:
        if value < smallest:
            smallest = value
    return smallest


¦'''
MARK = "<<fill>>"
VECTORS = (Path(__file__).parents[1] / "tests/data/demo/vector.py").read_text()


@dataclass
class Frame:
    """A picture of a page, the time at which it appeared, and its caption."""

    picture: Image.Image
    time: float
    caption: str


class Recording:
    """The frames of all scenes, with their durations."""

    def __init__(self) -> None:
        self.caption = ""
        self._scenes: list[list[Frame]] = []

    @asynccontextmanager
    async def scene(self, page: Page) -> AsyncIterator[None]:
        """Records a page while this context is open. The last picture is shown for a while longer."""
        frames: list[Frame] = []
        self._scenes.append(frames)
        session = await page.context.new_cdp_session(page)

        async def seen(event: dict[str, Any]) -> None:
            picture = Image.open(io.BytesIO(base64.b64decode(event["data"]))).convert("RGB")
            frames.append(Frame(picture, event["metadata"]["timestamp"], self.caption))
            await session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

        session.on("Page.screencastFrame", lambda event: asyncio.ensure_future(seen(event)))
        await asyncio.sleep(SETTLING_S)
        await session.send("Page.startScreencast", {"format": "png"})
        yield
        await asyncio.sleep(SETTLING_S)
        await session.send("Page.stopScreencast")

    def __iter__(self) -> Iterator[tuple[Image.Image, int]]:
        """Yields every picture and its duration in milliseconds."""
        for scene in self._scenes:
            # Animations run at sixty pictures a second; fewer are enough.
            in_order = sorted(scene, key=lambda frame: frame.time)
            frames = list({int(PICTURES_A_SECOND * frame.time): frame for frame in in_order}.values())
            ends = [frame.time for frame in frames[1:]] + [frames[-1].time + 2 * READING_S]
            for frame, end in zip(frames, ends, strict=True):
                yield captioned(frame), round(1000 * (end - frame.time))

    def write(self, target: Path) -> None:
        """Writes the frames as one lossless animated picture."""
        pictures, durations = zip(*self, strict=True)
        pictures[0].save(
            target, save_all=True, append_images=pictures[1:], duration=durations, loop=0, lossless=True, method=6
        )


def captioned(frame: Frame) -> Image.Image:
    """Returns a frame with its caption below; text in backquotes is drawn as a key."""
    width, height = frame.picture.size
    whole = Image.new("RGB", (width, height + CAPTION_HEIGHT), GROUND)
    whole.paste(frame.picture)
    draw, font = ImageDraw.Draw(whole), ImageFont.truetype(FONT, CAPTION_SIZE)
    left, middle = (width - font.getlength(frame.caption.replace("`", ""))) / 2, height + CAPTION_HEIGHT / 2
    for index, part in enumerate(frame.caption.split("`")):
        right = left + font.getlength(part)
        if index % 2:
            draw.rounded_rectangle((left - 7, middle - 14, right + 7, middle + 14), 5, KEY, outline=INK)
        draw.text((left, middle), part, INK, font, anchor="lm")
        left = right
    return whole


async def suggested(code: VSCode, recording: Recording) -> None:
    """Scene: the user types and gets suggestions of several lines."""
    await code.open("extremes.py", EXTREMES)
    recording.caption = "Suggestions appear while you type"
    async with recording.scene(code.page):
        await asyncio.sleep(READING_S / 2)
        await code.page.keyboard.type("def maximum(values):\n", delay=KEY_MS)
        await code.contains('«"""')
        await asyncio.sleep(READING_S)
        docstring = '"""The largest of some values, None where there are none."""'
        await code.page.keyboard.type(docstring, delay=KEY_MS)
        await code.press("Enter")
        await code.contains("«if ")
        await asyncio.sleep(READING_S)
        recording.caption = "`Alt+]`   shows the next one"
        await code.press("Alt+]")
        await code.contains("value > ")
        await asyncio.sleep(2 * READING_S)
        recording.caption = "`Tab`   takes it"
        await code.press("Tab")


async def filled(code: VSCode, recording: Recording) -> None:
    """Scene: fills all gaps of a file."""
    await code.open("vectors.py", "¦" + VECTORS)
    recording.caption = "A file with three gaps"
    async with recording.scene(code.page):
        await asyncio.sleep(READING_S)
        recording.caption = "`Ctrl+Alt+L`    `F`   fills them together"
        await code.press("Control+Alt+l", "f")
        await expect(code.page.locator(".view-line", has_text="<<fill>>")).to_have_count(0)


async def denoised(page: Page, recording: Recording) -> None:
    """Scene: fills the same gaps in the playground, which shows every step."""
    await page.click("#clear")
    await page.check("input[value=edit]", force=True)
    await page.fill("#code", VECTORS.replace(MARK, ""))
    for index, match in enumerate(re.finditer(MARK, VECTORS)):
        start = match.start() - len(MARK) * index
        await page.evaluate("at => document.getElementById('code').setSelectionRange(at, at)", start)
        await page.click("#mark")
    await page.locator("#sheet").evaluate("sheet => scrollTo(0, sheet.offsetTop - 12)")
    recording.caption = "How it is done: the same gaps in the playground"
    async with recording.scene(page):
        await asyncio.sleep(READING_S)
        await page.click("#fill")
        await page.wait_for_selector("#replay:visible")
        await asyncio.sleep(READING_S)
        recording.caption = "Again, slowly: all are drafted at once, what is sure is kept"
        await page.select_option("#speed", label="slowest")
        await page.click("#play")
        await expect(page.locator("#position")).to_have_text("result")


async def record(recording: Recording, environment: Mapping[str, str]) -> None:
    """Records every scene, one after the other, with one service."""
    with tempfile.TemporaryDirectory() as folder:
        # VS Code has another home; its language server finds only the service of this environment.
        own = [f"{name}={environment[name]}" for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME")]
        settings = LOOK | {"lacuna.command": ["env", *own, *SERVER], "lacuna.debounce": True}
        async with running(Path(folder), environment, settings=settings, size=SIZE) as code:
            await code.status("ready")
            await code.run("View: Toggle Primary Side Bar Visibility")
            await code.run("View: Toggle Status Bar Visibility")
            await suggested(code, recording)
            await filled(code, recording)
            service = Path(environment["XDG_RUNTIME_DIR"], "lacuna/service.json").read_bytes()
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                page = await browser.new_page(viewport=SIZE, color_scheme="dark")
                await page.goto(msgspec.json.decode(service, type=Running).url)
                await page.wait_for_selector("#server.ready")
                await denoised(page, recording)
                await browser.close()


def main() -> None:
    """Records the screencast and writes it."""
    recording = Recording()
    with without_service() as environment:
        asyncio.run(record(recording, environment))
    recording.write(TARGET)


if __name__ == "__main__":
    main()
