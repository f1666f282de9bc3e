"""A real headless Chromium with the playground of a real service. Screenshots are saved as artifacts."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from playwright.async_api import Page, async_playwright
from tests.server.live_service import live

ARTIFACTS = Path(os.environ.get("CI_ARTIFACTS") or Path(__file__).parents[2] / "artifacts")
# `make test` installs Chromium. Without one in the system, playwright uses its own.
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTH, HEIGHT = 1440, 1000


@asynccontextmanager
async def playground(colours: Literal["light", "dark"] = "light", token: str = "") -> AsyncIterator[Page]:
    """Yield the page when the model is ready. At the end, it must have no errors and no requests to other hosts."""
    faults: list[str] = []
    async with live(engine="sharpening_engine:load", token=token) as (_, address), async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=colours)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
        page.on("request", lambda asked: None if f"//{address}/" in asked.url else faults.append(asked.url))
        await page.goto(f"http://{address}/?token={token}")
        await page.wait_for_selector("#server.ready")
        yield page
        await browser.close()
    assert faults == []


async def keep(page: Page, name: str) -> None:
    """Save a screenshot of the whole page."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=ARTIFACTS / f"playground-{name}.png", full_page=True)
