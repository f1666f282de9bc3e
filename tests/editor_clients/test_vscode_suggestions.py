"""Suggestions and next edits in a real VS Code: screen, files on disk, requests to the engine."""

from itertools import count

import pytest
from playwright.async_api import expect
from tests.lsp.editor import until
from tests.lsp.service import Daemon
from tests.lsp.suggest.test_read_ahead import places
from tests.lsp.test_feedback import counted

from .vscode import MANIFEST, VSCode, in_one_window, insist

AREA = "def area(width, height):\n    ¦\n"


@in_one_window
async def test_the_engine_reads_ahead_at_the_cursor(code: VSCode, daemon: Daemon) -> None:
    await code.open("code.py", "one = 1\ntwo = ¦2\n")
    await until(lambda: ("one = 1\ntwo = ", "2\n") in places(daemon))
    await code.press("ArrowUp")
    await until(lambda: ("one = ", "1\ntwo = 2\n") in places(daemon))


@in_one_window
async def test_tab_accepts_a_suggestion_made_while_typing(code: VSCode, daemon: Daemon) -> None:
    before = counted(daemon)
    daemon.plan(fills=["width * height"])
    file = await code.open("area.py", AREA)
    await code.type("return ")
    await code.shows("def area(width, height):", "    return «width * height»")
    await code.type("wid")
    await code.shows("def area(width, height):", "    return wid«th * height»")
    assert file.read_text() == AREA.replace("¦", "")
    await code.press("Tab")
    await code.saved(file, "def area(width, height):\n    return width * height\n")
    await until(lambda: counted(daemon).get("accepted", 0) > before.get("accepted", 0))
    assert counted(daemon)["shown"] > before.get("shown", 0)


@in_one_window
async def test_tab_on_a_blank_line_indents_until_the_suggestion_was_seen(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=["return width"])
    attempts = count()

    async def attempt() -> None:
        """Open a file, and press Tab as soon as a suggestion is there; on a busy machine that may be late."""
        await code.open(f"blank{next(attempts)}.py", "def area(width):¦\n")
        await code.type("\n")
        await code.shows("def area(width):", "    «return width»")
        await code.press("Tab")
        await code.page.wait_for_timeout(500)
        _, line = await code.screen()
        assert line.startswith(" " * 8)

    await insist(attempt)
    await code.shows("def area(width):", "        «return width»")
    await code.page.wait_for_timeout(1000)
    await code.press("Tab")
    await code.shows("def area(width):", "        return width")


@in_one_window
async def test_the_next_word_and_the_next_line_can_be_accepted(code: VSCode, daemon: Daemon) -> None:
    before = counted(daemon).get("partly_accepted", 0)
    daemon.plan(fills=["if width < 0:\n        return None\n    return width * height"])
    file = await code.open("parts.py", AREA)
    await code.press("Alt+\\")
    rest = ("«        return None»", "«    return width * height»")
    await code.shows("def area(width, height):", "    «if width < 0:»", *rest)
    await code.press("Control+ArrowRight")
    await code.shows("def area(width, height):", "    if« width < 0:»", *rest)
    await code.press("Alt+End")
    await code.shows("def area(width, height):", "    if width < 0:", *rest)
    await until(lambda: counted(daemon).get("partly_accepted", 0) == before + 2)
    await code.saved(file, "def area(width, height):\n    if width < 0:\n\n")


@in_one_window
async def test_a_dismissed_suggestion_is_reported_and_not_shown_again(code: VSCode, daemon: Daemon) -> None:
    before = counted(daemon).get("rejected", 0)
    daemon.plan(fills=["wrong()"])
    await code.open("dismissed.py", "value =¦\n")
    await code.type(" ")
    await code.shows("value = «wrong()»")
    await code.press("Escape")
    await code.shows("value = ")
    await until(lambda: counted(daemon).get("rejected", 0) == before + 1)
    await code.press("Backspace")
    await code.type(" ")
    await code.page.wait_for_timeout(500)
    assert await code.screen() == ["value = "]


@in_one_window
async def test_several_cursors_do_not_get_the_suggestion_for_one(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=["width"])
    await code.open("cursors.py", "one =¦\ntwo =\n")
    await code.run("Add Cursor Below")
    before = len(daemon.requests)
    await code.type(" ")
    await code.page.wait_for_timeout(500)
    assert await code.screen() == ["one = ", "two = "]
    assert len(daemon.requests) == before


@in_one_window
async def test_suggestions_can_be_turned_off_and_on(code: VSCode, daemon: Daemon) -> None:
    await code.open("off.py", "¦\n")
    await code.run("Lacuna: Suggest While Typing or Only on Request")
    await code.status("ready, .*, suggesting on request")
    await code.type("a = ")
    await code.press("Alt+\\")
    await code.shows("a = «filled»")
    assert [request["task"]["candidates"] for request in daemon.requests] == [3]
    await code.run("Lacuna: Suggest While Typing or Only on Request")
    await code.run("Lacuna: Turn Suggestions On or Off")
    await code.status("ready, .*, not suggesting")
    await code.type("b + ")
    await code.press("Alt+\\")
    await code.run("Lacuna: Status and Actions")
    await code.choices.filter(has_text="Turn suggestions on").click()
    await code.status("ready, .*, suggesting while you type")
    await code.insert("c + ")
    await code.shows("a = b + c + «filled»")
    assert len(daemon.requests) == 2


@in_one_window
async def test_a_snooze_is_seen_in_the_status_bar_and_ended_in_its_menu(code: VSCode, daemon: Daemon) -> None:
    await code.open("snoozed.py", "¦\n")
    await code.run("Lacuna: Snooze Suggestions for Ten Minutes")
    await code.status("ready, .*, snoozed")
    await code.says("snoozed")
    await code.run("Lacuna: Status and Actions")
    await code.choices.filter(has_text="Suggest again").click()
    await code.status("ready, .*, suggesting while you type")
    await code.insert("a = ")
    await code.shows("a = «filled»")


FILLER = "".join(f"value_{n} = compute_{n}(source_{n})\n" for n in range(6))
RENAMED = f"import old_name¦\n{FILLER}keep(old_name, 1)\n{FILLER}    show(old_name)\n"


async def hints(code: VSCode) -> str:
    """What decorations say after the lines of the editor."""
    script = """() => [...document.querySelectorAll('.editor-instance .view-line span')]
      .map(span => getComputedStyle(span, '::after').content).filter(text => text.includes('⇥')).join()"""
    return str(await code.page.evaluate(script))


async def hinted(code: VSCode, text: str) -> None:
    """Wait until exactly this hint is drawn, or none if the text is empty."""
    wanted = f'"⇥ {text}"' if text else ""
    for _ in range(600):
        found = await hints(code)
        if found == wanted:
            return
        await code.page.wait_for_timeout(100)
    pytest.fail(f"the hints are {found!r}, not {text!r}")


async def rename(code: VSCode) -> None:
    """Replace the name before the cursor in one edit, so that nothing is hinted of a part of it."""
    await code.press("Control+Shift+ArrowLeft")
    await code.selected("Ln 1, Col 8 (8 selected)")
    await code.insert("new_name")
    await hinted(code, "next edit")


@in_one_window
async def test_tab_goes_to_the_next_edit_and_then_makes_it(code: VSCode, daemon: Daemon) -> None:
    """zed#27480: nothing but a short hint is drawn before the cursor is at the place."""
    daemon.plan(fills=[""], status="no_valid_fill")
    file = await code.open("renamed.py", RENAMED)
    await rename(code)
    assert "keep(new_name" not in await hints(code)  # collapsed until the cursor is there
    await code.press("Tab")
    await hinted(code, "keep(new_name, 1)")
    await code.press("Tab")
    await hinted(code, "next edit")
    await code.press("Tab")
    await hinted(code, "show(new_name)")
    await code.press("Tab")
    await hinted(code, "")
    await code.saved(file, RENAMED.replace("¦", "").replace("old_name", "new_name"))


@in_one_window
async def test_tab_indents_where_the_cursor_is_in_the_indentation(code: VSCode, daemon: Daemon) -> None:
    """vscode#252432: a next edit does not take the key that indents."""
    daemon.plan(fills=[""], status="no_valid_fill")
    file = await code.open("indented.py", RENAMED)
    await rename(code)
    await code.press("ArrowDown", "Home")
    await code.page.wait_for_timeout(500)  # VS Code passes on where the cursor is
    await code.press("Tab")
    after = RENAMED.replace("¦", "").replace("old_name", "new_name", 1).replace("value_0", "    value_0", 1)
    await code.saved(file, after)


@in_one_window
async def test_escape_dismisses_a_next_edit_for_good(code: VSCode, daemon: Daemon) -> None:
    """vscode#256291: one key, and it does not come back."""
    daemon.plan(fills=[""], status="no_valid_fill")
    await code.open("escaped.py", RENAMED)
    await rename(code)
    await code.press("Shift+ArrowLeft")
    await code.selected("Ln 1, Col 15 (1 selected)")
    await code.press("Escape")  # that of the selection
    await code.selected("Ln 1, Col 15")
    await hinted(code, "next edit")
    await code.press("Escape")
    await hinted(code, "")
    await code.page.wait_for_timeout(1500)
    assert not await hints(code)


@pytest.mark.parametrize("command", ["lacuna.nextEdit", "lacuna.dismissNextEdit"])
def test_the_keys_of_next_edits_are_free_while_something_else_wants_them(command: str) -> None:
    """vscode#257351: a snippet keeps Tab and Escape, and so do suggestions, selections and several cursors."""
    (when,) = [one["when"] for one in MANIFEST["contributes"]["keybindings"] if one["command"] == command]
    others = ("inSnippetMode", "suggestWidgetVisible", "inlineSuggestionVisible")
    others += ("editorHasMultipleSelections", "editorHasSelection")
    if command == "lacuna.dismissNextEdit":
        others += ("parameterHintsVisible", "renameInputVisible")
        others += ("referenceSearchVisible", "dirtyDiffVisible", "markersNavigationVisible")
    assert {f"!{name}" for name in others} <= set(when.split(" && "))


@in_one_window
async def test_the_status_bar_says_why_a_request_gets_no_suggestion(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=[""], status="deadline")
    await code.open("nothing.py", "a = ¦\n")
    await code.press("Alt+\\")
    why = "nothing to suggest here: the model wrote nothing within"
    await code.page.locator(".statusbar-item").filter(has_text=why).first.wait_for()
    daemon.plan(fills=["filled"])
    await code.press("Alt+\\")  # at the same place: what failed was not kept
    await code.shows("a = «filled»")


@in_one_window
async def test_a_suggestion_goes_on_behind_the_word_that_the_list_of_words_has_selected(
    code: VSCode, daemon: Daemon
) -> None:
    """VS Code opens the list where no suggestion came in time, and hides those that do not begin with its word."""
    daemon.plan(fills=[" * height"], pause=1.0)
    file = await code.open("listed.py", AREA.replace("¦", "return ¦"))
    await code.type("wid")
    await code.shows("def area(width, height):", "    return wid«th * height»")
    await expect(code.page.locator(".suggest-widget.visible .monaco-list-row.focused")).to_have_text("width")
    await code.press("Tab")
    await code.shows("def area(width, height):", "    return width« * height»")
    await code.press("Tab")
    await code.saved(file, "def area(width, height):\n    return width * height\n")


@in_one_window
async def test_what_the_other_language_servers_say_is_read(code: VSCode, daemon: Daemon) -> None:
    """VS Code's own server of TypeScript starts with the first file, and is asked again with each character."""
    await code.open("glue.ts", "function glue(a: number): void {}\n¦\n")
    told: list[dict[str, str]] = []

    async def attempt() -> None:
        await code.press("Escape", "Home", "Shift+End", "Delete")
        await code.type("glue(")
        await code.page.wait_for_timeout(500)  # the answers come meanwhile, and travel with the next request
        await code.type(" ")
        await code.page.wait_for_timeout(500)
        told[:] = daemon.requests[-1].get("signatures", [])
        assert len(told) == 2

    await insist(attempt)
    assert [one["text"] for one in told] == ["glue(a: number): void\n", "function glue(a: number): void\n"]
    assert {one["reason"] for one in told} == {"what the language server says of `glue`"}
