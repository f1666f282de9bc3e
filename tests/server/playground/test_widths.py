"""The pages on screens of every width, in both themes: nothing is wider than the screen, and every control is seen."""

import re

import pytest
from playwright.async_api import Page, expect

from .browser import HEIGHT, keep, playground

pytestmark = pytest.mark.usefixtures("scripted_engine")

# Left to right is compared in passes.
BY_PASSES = re.compile(r"^(\d+) tokens in 12 passes of the model\. From left to right, .*, it takes \1 passes\.$")
# What does not fit: the page itself, controls that are partly beside the screen, and buttons that cut their text.
MISFITS = """() => {
  const page = document.documentElement;
  const named = (element) => element.id || element.name || element.textContent.trim();
  const seen = [...document.querySelectorAll("a, button, label, output, select, textarea, input[type=range]")]
    .filter((element) => element.checkVisibility());
  const beside = seen.filter((element) => {
    const box = element.getBoundingClientRect();
    return box.left < 0 || box.right > innerWidth || !box.width || !box.height;
  });
  const cut = seen.filter((element) => element.tagName === "BUTTON" && element.scrollWidth > element.clientWidth);
  return [...(page.scrollWidth > innerWidth ? [`page of ${page.scrollWidth}`] : []), ...[...beside, ...cut].map(named)];
}"""
# How much higher the badge of a gap is than the space between its line and the one above.
COVERED = """() => Math.max(...[...document.querySelectorAll("#backdrop .gap.empty")].map((gap) => {
  const space = parseFloat(getComputedStyle(gap).lineHeight) - gap.getBoundingClientRect().height;
  return parseFloat(getComputedStyle(gap, "::after").height) - space;
}))"""


async def fits(page: Page, name: str) -> None:
    """Look at the page in both themes, keep a picture of each, and find what does not fit."""
    for colours in ("dark", "light"):
        await page.emulate_media(color_scheme=colours)
        await keep(page, f"{name}-{colours}")
        assert await page.evaluate(MISFITS) == []


async def test_everything_fits() -> None:
    async with playground() as page:
        for width in (320, 768):
            await page.set_viewport_size({"width": width, "height": HEIGHT})
            await fits(page, f"{width}-1-gaps")
            assert await page.evaluate(COVERED) < 1
            await page.click("#fill")
            await expect(page.locator("#canvas .fill").first).to_be_visible()
            await fits(page, f"{width}-2-result")
            await expect(page.locator("#insight")).to_have_text(BY_PASSES)
            await page.locator("#scrubber").fill("3")
            await fits(page, f"{width}-3-replay")
            await page.reload()
            await page.wait_for_selector("#server.ready")
