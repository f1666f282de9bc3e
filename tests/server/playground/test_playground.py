import re

import pytest
from playwright.async_api import Page, expect

from .browser import HEIGHT, keep, playground

pytestmark = pytest.mark.usefixtures("scripted_engine")

# Records every state that a slot of the canvas has.
WATCH = """() => {
  window.seen = new Set();
  const look = () => {
    for (const slot of document.querySelectorAll("#canvas .slot")) {
      window.seen.add([...slot.classList].filter((name) => name !== "slot").join(" "));
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, attributes: true });
}"""
CODE = "def add(a, b):\n    return \n"


async def test_slots_are_committed_step_by_step_and_the_steps_can_be_replayed() -> None:
    async with playground("dark") as page:
        await keep(page, "1-gaps")
        gaps = await page.locator("#backdrop .gap").count()
        await page.evaluate(WATCH)  # on a busy machine, the test would miss a state that lasts one step
        await page.click("#fill")
        await keep(page, "2-filling")
        await expect(page.locator("#canvas .fill")).to_have_count(gaps)
        assert {"mask", "draft", "committed now"} <= set(await page.evaluate("() => [...window.seen]"))
        assert "self.y + other.y" in (await page.inner_text("#canvas .fill"))
        figures = {name: await page.inner_text(f"[data-figure='{name}']") for name in ("passes", "steps", "vetoes")}
        assert figures == {"passes": "12", "steps": "6", "vetoes": "3"}
        await keep(page, "3-result")

        # In the third step, some slots are committed. Others are drafts, whose colour and blur show their confidence.
        await page.locator("#scrubber").fill("3")
        assert await page.inner_text("#position") == "step 3 of 6"
        assert await page.locator("#canvas .slot.committed").count() > gaps
        draft = page.locator("#canvas .slot.draft").first
        assert "45 % sure" in (await draft.get_attribute("title") or "")
        assert await draft.evaluate("slot => getComputedStyle(slot).filter") == "blur(0.935px)"
        assert await page.locator("#lattices canvas").count() == gaps
        await keep(page, "4-replay")

        await page.locator("#scrubber").fill("0")
        assert await page.locator("#canvas .slot:not(.mask)").count() == 0
        await page.select_option("#speed", "200")
        await page.click("#play")
        await expect(page.locator("#position")).to_have_text("result")


async def test_a_run_that_was_cancelled_says_nothing_in_the_next_one() -> None:
    async with playground() as page:
        gaps = await page.locator("#backdrop .gap").count()
        await page.evaluate("""() => {
          for (const id of ["fill", "back", "fill"]) document.getElementById(id).click();
        }""")
        await expect(page.locator("#canvas .fill")).to_have_count(gaps)
        await expect(page.locator("#message.bad")).to_have_count(0)


async def test_gaps_are_marked_with_the_mouse_and_with_keys() -> None:
    async with playground() as page:
        await page.click("#clear")
        await expect(page.locator("#fill")).to_be_disabled()
        await page.mouse.click(*await place(page, "    def __add__", 4))
        await expect(page.locator("#backdrop .gap.empty")).to_have_count(1)
        await page.mouse.dblclick(*await place(page, "Vector(self.x", 2))
        await expect(page.locator("#backdrop .gap:not(.empty)")).to_have_text("Vector")
        await page.mouse.click(*await place(page, "Vector(self.x", 2))
        await expect(page.locator("#backdrop .gap")).to_have_count(1)
        await page.click("#fill")
        await expect(page.locator("#canvas .fill")).to_have_count(1)
        await page.click("#back")
        await expect(page.locator("#code")).to_be_visible()

        # In this mode, keys mark gaps and do not change the code.
        await page.click("#clear")
        await page.focus("#code")
        code = await page.input_value("#code")
        await page.keyboard.press("Control+Home")
        for key in ("x", "Shift+ArrowRight", "Enter", "ArrowRight", "ArrowDown", "Enter"):
            await page.keyboard.press(key)
        await expect(page.locator("#backdrop .gap")).to_have_count(2)
        await page.keyboard.press("Delete")
        await expect(page.locator("#backdrop .gap")).to_have_count(1)
        assert await page.input_value("#code") == code

        # A refusal is shown.
        await page.check("input[value=edit]", force=True)
        await page.fill("#code", "REFUSE")
        await page.click("#mark")
        await page.click("#fill")
        await expect(page.locator("#message.bad")).to_contain_text("the regions are refused")
        await expect(page.locator("#fill")).to_be_enabled()


async def test_code_can_be_pasted_and_filled_without_a_mouse_with_the_token_of_the_address() -> None:
    async with playground(token="secret token/1") as page:
        await page.focus("input[value=edit]")
        await page.keyboard.press("Space")
        await page.focus("#code")
        await page.keyboard.press("Control+A")
        await page.keyboard.insert_text(CODE)
        await expect(page.locator("#backdrop .gap")).to_have_count(0)
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("End")
        await page.focus("#mark")
        await page.keyboard.press("Enter")
        await expect(page.locator("#hint")).to_contain_text("1 gap.")
        # Text that is inserted before the gap moves the gap.
        await page.keyboard.press("Control+Home")
        await page.keyboard.insert_text("# sums\n")
        assert await page.evaluate("() => document.querySelector('.gap').previousSibling.textContent") == " "
        await page.keyboard.press("Control+Enter")
        await expect(page.locator("#canvas .fill")).to_have_count(1)
        assert (await page.inner_text("#canvas")).startswith("# sums\ndef add(a, b):\n    return self.x")
        await page.focus("#scrubber")
        await page.keyboard.press("Home")
        # Who reads slowly gets the newest step alone.
        assert re.fullmatch("step 0 of [1-6]", await page.inner_text("#position"))


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


async def place(page, text: str, offset: int) -> tuple[float, float]:
    """The position of a character of the displayed code on the screen."""
    box = await page.evaluate(
        """([text, offset]) => {
          const root = document.getElementById("backdrop");
          let left = root.textContent.indexOf(text) + offset;
          const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
          for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            if (left < node.length) {
              const range = document.createRange();
              range.setStart(node, left);
              range.setEnd(node, left + 1);
              const box = range.getBoundingClientRect();
              return [box.x + 1, box.y + box.height / 2];
            }
            left -= node.length;
          }
        }""",
        [text, offset],
    )
    return box[0], box[1]
