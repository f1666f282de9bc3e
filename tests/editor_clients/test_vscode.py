"""The VS Code client in a real VS Code: the screen, the files on disk, and the requests to the engine."""

import json
import re
import urllib.request
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.e2e.test_lsp import environment  # noqa: F401 (a fixture)
from tests.lsp.editor import until
from tests.lsp.service import Daemon
from tests.lsp.suggest.test_read_ahead import places
from tests.lsp.test_feedback import counted

from lacuna_lsp.commands import COMMANDS
from lacuna_server.wire.settings import Settings, properties

from .vscode import CLIENT, PATIENCE_MS, SERVER, VSCode, running, server_in

in_one_window = pytest.mark.asyncio(loop_scope="module")
MANIFEST = json.loads((CLIENT / "package.json").read_text())
README = (CLIENT / "README.md").read_text()
AREA = "def area(width, height):\n    ¦\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def window(shared_daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[VSCode]:
    async with running(tmp_path_factory.mktemp("vscode"), shared_daemon.environment) as code:
        await code.status("ready")
        # VS Code creates parts of its first editor when it is idle. On a busy machine, typing sends no request yet.
        shared_daemon.plan()
        await code.open("first.py", "a = ¦\n")
        await code.press("Alt+\\")
        await code.shows("a = «filled»")
        await code.close()
        yield code


@pytest_asyncio.fixture(loop_scope="module")
async def code(window: VSCode) -> AsyncIterator[VSCode]:
    """A window without open editors, with the initial settings."""
    await window.status("ready, .*, suggesting while you type")
    yield window
    window.configure()
    await window.close()


def servers(mark: str) -> list[str]:
    """The process ids of language servers that have ``mark`` in their command line or environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, variables = ((process / name).read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            continue
        if b"lacuna_lsp" in command and mark.encode() in command + variables:
            found.append(process.name)
    return found


def metrics(daemon: Daemon) -> str:
    with urllib.request.urlopen(f"{daemon.running.url}/metrics") as answer:
        return str(answer.read())


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
async def test_the_next_word_and_the_next_line_can_be_accepted(code: VSCode, daemon: Daemon) -> None:
    before = counted(daemon).get("partly_accepted", 0)
    daemon.plan(fills=["if width < 0:\n        return None\n    return width * height"])
    file = await code.open("parts.py", AREA)
    await code.press("Alt+\\")
    await code.shows(
        "def area(width, height):", "    «if width < 0:»", "«        return None»", "«    return width * height»"
    )
    await code.press("Control+ArrowRight")
    await code.shows(
        "def area(width, height):", "    if« width < 0:»", "«        return None»", "«    return width * height»"
    )
    await code.press("Alt+End")
    await code.shows(
        "def area(width, height):", "    if width < 0:", "«        return None»", "«    return width * height»"
    )
    await until(lambda: counted(daemon).get("partly_accepted", 0) == before + 2)
    await code.saved(file, "def area(width, height):\n    if width < 0:\n\n")


@in_one_window
async def test_a_dismissed_suggestion_is_reported_and_not_made_again(code: VSCode, daemon: Daemon) -> None:
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
    assert [request["text"] for request in daemon.requests].count("value = \n") == 1


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
    await code.press("Escape")
    await hinted(code, "")
    await code.page.wait_for_timeout(1500)
    assert not await hints(code)


@in_one_window
async def test_nothing_is_offered_in_a_file_that_is_closed(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=[""], status="no_valid_fill")
    closed = await code.open("closed.py", RENAMED)
    await rename(code)
    await code.saved(closed, RENAMED.replace("¦", "").replace("old_name", "new_name", 1))
    await hinted(code, "next edit")
    await code.close()
    opened = await code.open("opened.py", "value = 1¦\n")
    await code.page.wait_for_timeout(500)
    assert not await hints(code)
    await code.press("Tab")  # it is free again
    await code.saved(opened, "value = 1   \n")


@in_one_window
async def test_a_next_edit_is_shown_although_the_cursor_moves_before_its_answer(code: VSCode, daemon: Daemon) -> None:
    """continue#8661: what is answered is shown."""
    daemon.plan(fills=[""], status="no_valid_fill")
    await code.open("moved.py", RENAMED)
    for _ in range(len("old_name")):
        await code.press("Backspace")
    await code.type("new_name")
    await code.press("ArrowDown", "ArrowDown")
    await hinted(code, "next edit")


@in_one_window
async def test_undoing_a_change_offers_no_edit_back(code: VSCode, daemon: Daemon) -> None:
    """vscode-copilot-release#8763: what the user takes back is no change to follow."""
    daemon.plan(fills=[""], status="no_valid_fill")
    await code.open("undone.py", RENAMED)
    await rename(code)
    await code.press("Tab")
    await hinted(code, "keep(new_name, 1)")
    await code.press("Tab")
    await hinted(code, "next edit")
    for _ in range(4):
        await code.press("Control+z")
    await code.page.wait_for_timeout(1500)
    assert not await hints(code)


@in_one_window
async def test_several_suggestions_are_made_on_request(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=["width * height", "height * width", "2 * (width + height)"])
    file = await code.open("several.py", AREA.replace("¦", "return ¦"))
    await code.press("Alt+\\")
    await code.shows("def area(width, height):", "    return «width * height»")
    await code.press("Alt+]")
    await code.shows("def area(width, height):", "    return «height * width»")
    await code.press("Alt+]")
    await code.shows("def area(width, height):", "    return «2 * (width + height)»")
    await code.press("Tab")
    await code.saved(file, "def area(width, height):\n    return 2 * (width + height)\n")


@in_one_window
async def test_all_markers_are_filled_together(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=[["10", "width * height"]])
    file = await code.open("markers.py", "SIZE = <<fill>>\n\n\ndef area(width, height):\n    return <<fill>>\n")
    await code.press("Control+Alt+l", "f")
    await code.shows("SIZE = 10", "", "", "def area(width, height):", "    return width * height")
    await code.saved(file, "SIZE = 10\n\n\ndef area(width, height):\n    return width * height\n")
    (request,) = daemon.requests
    assert len(request["regions"]) == 2


@in_one_window
async def test_a_long_command_shows_progress_and_can_be_cancelled(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(steps=5000, pause=0.02)
    file = await code.open("long.py", "a = <<fill>>\n")
    await code.press("Control+Alt+l", "f")
    await code.boxes.filter(has_text="Lacuna: Filling").get_by_role("button", name="Cancel").click()
    await until(lambda: "stopped" in [event["event"] for event in daemon.log])
    await expect(code.boxes).to_have_count(0)
    assert await code.screen() == ["a = <<fill>>"]
    assert file.read_text() == "a = <<fill>>\n"


@in_one_window
async def test_several_selections_are_filled_together(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=[["1", "2"]])
    file = await code.open("selections.py", "a = ¦old\nb = old\n")
    await code.press("Control+d", "Control+d")
    await code.selected("2 selections (6 characters selected)")
    await code.press("Control+Alt+l", "f")
    await code.shows("a = 1", "b = 2")
    await code.saved(file, "a = 1\nb = 2\n")


@in_one_window
async def test_alternatives_for_a_selection_are_previewed_in_its_place(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=["old", "width * height", "sum(\n    (width, height)\n)"])
    file = await code.open("again.py", "a = ¦old\nb = 1\n")
    for accepted in (False, True):
        await code.press("Control+d")
        await code.selected("Ln 1, Col 8 (3 selected)")
        await code.press("Control+Alt+l", "r")
        await expect(code.choices).to_contain_text(["1: width * height", "2: sum("])
        await code.shows("a = width * height", "b = 1")
        await code.press("ArrowDown")
        await code.shows("a = sum(", "    (width, height)", ")", "b = 1")
        if not accepted:
            await code.press("Escape")
            await code.shows("a = old", "b = 1")
    await code.press("Enter")
    await code.saved(file, "a = sum(\n    (width, height)\n)\nb = 1\n")
    await code.press("Control+z")
    await code.saved(file, "a = old\nb = 1\n")


@in_one_window
async def test_a_change_is_propagated_after_a_preview(code: VSCode, daemon: Daemon) -> None:
    other = code.folder / "other.py"
    other.write_text("web.get(c)\n")
    file = await code.open("here.py", "web.get(a¦)\nweb.get(b)\n")
    await code.type(", timeout=9")
    await code.press("Control+Alt+l", "p")
    await code.apply_all()
    await until(lambda: other.read_text() == "web.get(c, timeout=9)\n")
    await code.saved(file, "web.get(a, timeout=9)\nweb.get(b, timeout=9)\n")


@in_one_window
async def test_a_discarded_preview_shows_no_message_and_rejects_nothing(code: VSCode, daemon: Daemon) -> None:
    before = counted(daemon).get("rejected", 0)
    file = await code.open("discarded.py", "value = ¦\nweb.get(a)\nweb.get(b)\n")
    await code.press("Alt+\\")
    await code.shows("value = «filled»", "web.get(a)", "web.get(b)")
    await code.press("ArrowDown", "End", "ArrowLeft")
    await code.insert(", 9")
    await code.press("Control+Alt+l", "p")
    await code.page.locator('[aria-label="Bulk Edit"] .edit-checkbox').first.wait_for()
    await code.page.get_by_role("button", name="Discard", exact=True).click()
    await expect(code.page.get_by_role("button", name="Discard", exact=True)).to_have_count(0)
    await code.press("Control+Home", "End", "Alt+\\")
    await code.shows("value = «filled»", "web.get(a, 9)", "web.get(b)")
    await expect(code.boxes).to_have_count(0)
    assert counted(daemon).get("rejected", 0) == before
    await code.saved(file, "value = \nweb.get(a, 9)\nweb.get(b)\n")


@in_one_window
async def test_a_refactor_by_a_pattern_edits_the_workspace(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=["30"])
    other = code.folder / "fetch.py"
    other.write_text("fetch(1)\n")
    file = await code.open("pattern.py", "x = fetch('ä', 1)\n")
    await code.press("Control+Alt+l", "e")
    await code.choices.filter(has_text="By a pattern").click()
    await code.answer("Lacuna: what to look for", "fetch($$$ARGS)")
    await code.answer("Lacuna: what to put in its place", "fetch($$$ARGS, timeout=<<fill>>)")
    await code.choices.filter(has_text="In the whole workspace").click()
    await code.apply_all()
    await until(lambda: other.read_text() == "fetch(1, timeout=30)\n")
    await code.saved(file, "x = fetch('ä', 1, timeout=30)\n")


@in_one_window
async def test_lines_are_edited_by_an_instruction_after_a_preview(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=["x = 10\n"])
    file = await code.open("told_to.py", "x = 1\ny = 2\n")
    await code.press("Control+Home")
    await code.press("Control+Alt+l", "i")
    await code.answer("Lacuna: edit the selection", "ten times")
    await code.apply_all()
    await code.saved(file, "x = 10\ny = 2\n")
    assert daemon.requests[-1]["regions"][0]["instruction"] == "ten times"


@in_one_window
async def test_a_recipe_edits_one_file(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=["Adds two numbers."])
    file = await code.open("recipe.py", "def add(a, b):\n    return a + b\n")
    await code.press("Control+Alt+l", "e")
    await code.choices.filter(has_text="docstrings, 1 place in this file").click()
    await code.choices.filter(has_text=re.compile("^In this file")).click()  # each recipe shows "places in this file"
    await code.apply_all()
    await code.saved(file, 'def add(a, b):\n    """Adds two numbers."""\n    return a + b\n')


@in_one_window
async def test_a_recipe_asks_for_its_settings(code: VSCode, daemon: Daemon) -> None:
    file = await code.open("told.py", "def add(a):\n    return a\n\n\nadd(1)\n")
    await code.press("Control+Alt+l", "e")
    await code.choices.filter(has_text="Add a parameter to a function").click()
    for name, value in (("function", "add"), ("parameter", "b: int"), ("value", "2")):
        await code.answer(f"{name}: ", value)
    await code.choices.filter(has_text=re.compile("^In this file")).click()
    await code.apply_all()
    await code.saved(file, "def add(a, b: int):\n    return a\n\n\nadd(1, b=2)\n")


@in_one_window
async def test_an_empty_body_can_be_filled_by_a_code_action(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=["width * height"])
    file = await code.open("action.py", "def area(width, height):\n    ¦...\n")
    await code.press("Control+.")
    await code.page.get_by_text("Fill 1 empty body in area").click()
    await code.shows("def area(width, height):", "    width * height")
    await code.saved(file, "def area(width, height):\n    width * height\n")


@in_one_window
async def test_a_cell_of_a_notebook_is_filled_with_the_cells_above_as_context(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=[["one", "two"]])
    texts = ("import math", "a = <<fill>>\nb = <<fill>>")
    cells = [dict(cell_type="code", execution_count=None, metadata={}, outputs=[], source=text) for text in texts]
    metadata = {"language_info": {"name": "python"}}
    file = code.folder / "book.ipynb"
    file.write_text(json.dumps(dict(cells=cells, metadata=metadata, nbformat=4, nbformat_minor=5)))
    await code.ask("Control+p", str(file), "book.ipynb")
    await code.page.locator(".notebook-editor .code-cell-row .monaco-editor").nth(1).click()
    await code.press("Control+Alt+l", "f")
    await until(lambda: daemon.requests)
    await code.page.wait_for_selector('.tab.active.dirty[data-resource-name="book.ipynb"]')
    await code.press("Control+s")

    def saved() -> bool:
        text = file.read_text()  # VS Code may be writing it
        return text.rstrip().endswith("}") and "".join(json.loads(text)["cells"][1]["source"]) == "a = one\nb = two"

    await until(saved)
    (request,) = daemon.requests
    assert [(snippet["path"], snippet["text"]) for snippet in request["snippets"]] == [("book.ipynb", "import math")]


@in_one_window
async def test_a_refused_or_empty_fill_shows_one_line(code: VSCode, daemon: Daemon) -> None:
    await code.open("nothing.py", "a = 1\n")
    await code.press("Control+Alt+l", "f")
    await code.shows_message("Lacuna: there is nothing to fill in")
    daemon.plan(status="no_valid_fill")
    await code.press("Control+a")
    await code.selected("Ln 2, Col 1 (6 selected)")
    await code.press("Control+Alt+l", "f")
    await code.shows_message("Lacuna: nothing was found to put in")


@in_one_window
async def test_a_read_only_file_is_not_filled(code: VSCode, daemon: Daemon) -> None:
    await code.open("read.py", "a = <<fill>>\n")
    await code.run("File: Set Active Editor Read-only in Session")
    await code.ask("F1", ">Lacuna: ")
    await expect(code.choices.filter(has_text="Refactor")).to_have_count(1)
    await expect(code.choices.filter(has_text="Fill Selections or Markers")).to_have_count(0)
    await code.press("Escape", "Control+Alt+l", "f")
    await code.run("File: Set Active Editor Writeable in Session")
    assert daemon.requests == []


@in_one_window
async def test_suggestions_can_be_turned_off_and_on(code: VSCode, daemon: Daemon) -> None:
    await code.open("off.py", "¦\n")
    await code.run("Lacuna: Suggest While Typing or Only on Request")
    await code.status("ready, .*, suggesting on request")
    await code.type("a = ")
    await code.press("Alt+\\")
    await code.shows("a = «filled»")
    assert [request["candidates"] for request in daemon.requests] == [3]
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
async def test_settings_reach_the_server(code: VSCode, daemon: Daemon) -> None:
    await code.open("settings.py", "a = ¦\n")
    code.configure(automatic=False, candidates=2, maxTokens=7, colour="red")
    await code.shows_message("Lacuna: unknown setting lacuna.colour")
    await code.status("ready, .*, suggesting on request")
    await code.press("Alt+\\")
    await code.shows("a = «filled»")
    (request,) = daemon.requests
    assert (request["candidates"], request["regions"][0]["max_tokens"]) == (2, 7)


@in_one_window
async def test_a_projects_file_holds_where_the_user_has_set_nothing(code: VSCode, daemon: Daemon) -> None:
    project = code.folder / "lacuna.toml"
    project.write_text("max_tokens = 9\ncandidates = 4\n")
    code.configure(candidates=2)
    async with code.restart():
        await code.run("Lacuna: Restart Language Server")
    project.unlink()
    await code.status("ready")
    await code.open("project.py", "a = ¦\n")
    await code.press("Alt+\\")
    await code.shows("a = «filled»")
    (request,) = daemon.requests
    assert (request["candidates"], request["regions"][0]["max_tokens"]) == (2, 9)
    async with code.restart():
        await code.run("Lacuna: Restart Language Server")


@in_one_window
async def test_a_server_that_is_not_found_is_reported(code: VSCode, daemon: Daemon) -> None:
    code.configure(command=["lacuna-lsp-of-nowhere"])
    await code.shows_message("lacuna-lsp-of-nowhere was not found. Install it with")
    await code.status("stopped")
    await code.open("nowhere.py", "¦\n")
    await code.type("a = ")
    await expect(code.boxes).to_have_count(0)
    code.configure()
    await code.status("ready")
    await code.type("b + ")
    await code.shows("a = b + «filled»")


@in_one_window
async def test_a_program_that_is_no_language_server_is_reported_once(code: VSCode, daemon: Daemon) -> None:
    code.configure(command=[*SERVER, "--nonsense"])
    box = code.boxes
    await expect(box.filter(has_text="--nonsense did not start as a language server")).to_have_count(1)
    await code.page.wait_for_timeout(500)  # a second notification would appear in this time
    await expect(box).to_have_count(1)
    await code.press("Escape")
    await code.status("stopped")
    code.configure()
    await code.status("ready")


@in_one_window
async def test_a_lost_engine_is_reported_and_reconnected(code: VSCode, own_daemon: Daemon) -> None:
    url = own_daemon.running.url
    async with code.restart():
        code.configure(command=[*SERVER, "--engine", url])
    assert "lacuna_sessions 1" in metrics(own_daemon)
    await code.open("lost.py", "¦\n")
    await code.type("a = ")
    await code.shows("a = «filled»")
    own_daemon.kill()
    await code.shows_message("Lacuna: The connection to the engine broke; it is tried again (1).")
    await code.status("lost")
    await code.type("b + ")
    await expect(code.boxes).to_have_count(0)
    own_daemon.start(int(url.rpartition(":")[2]))
    await code.status("ready")
    await code.type("c + ")
    await code.shows("a = b + c + «filled»")
    assert own_daemon.requests[-1]["text"] == "a = b + c + \n"
    async with code.restart():
        code.configure()
    await until(lambda: not servers(url))


@in_one_window
async def test_the_restart_command_restarts_the_server(code: VSCode, daemon: Daemon) -> None:
    mark = str(daemon.folder)
    await until(lambda: len(servers(mark)) == 1)
    before = servers(mark)
    async with code.restart():
        await code.run("Lacuna: Restart Language Server")
    await until(lambda: len(servers(mark)) == 1)
    assert servers(mark) != before
    await code.open("restarted.py", "¦\n")
    await code.type("a = ")
    await code.shows("a = «filled»")


@in_one_window
async def test_the_log_command_opens_the_log(code: VSCode, daemon: Daemon) -> None:
    await code.run("Lacuna: Open Log of Language Server")
    await code.page.wait_for_selector('.tab.active[data-resource-name="lacuna-lsp.log"]')


@in_one_window
async def test_the_readme_shows_the_real_screen(code: VSCode, daemon: Daemon) -> None:
    picture = README.split("```\n")[3]
    head, suggested = picture.replace("»\n«", "\n").rstrip("»\n").split("«")
    daemon.plan(fills=[suggested])
    await code.open("picture.py", f"{head}¦\n")
    await code.press("Alt+\\")
    await code.shows(*picture.splitlines())


@in_one_window
async def test_the_extension_fills_with_the_real_model(code: VSCode, environment: Mapping[str, str]) -> None:  # noqa: F811 (the fixture)
    async with code.restart():
        code.configure(command=server_in(environment))
    file = await code.open("real.py", "def area(width, height):\n    return width * <<fill>>\n")
    await code.press("Control+Alt+l", "f")
    await code.page.wait_for_selector('.tab.active.dirty[data-resource-name="real.py"]')
    await code.press("Control+s")
    await until(lambda: "<<fill>>" not in file.read_text())
    compile(file.read_text(), "real.py", "exec")

    (code.folder / "shapes.py").write_text("def area_of_circle(radius):\n    return 3.14 * radius**2\n")
    await code.open("context.py", "from shapes import area_of_circle\n\nprint(area_of_circle(¦))\n")
    await code.press("Control+Alt+l", "c")
    page = code.page.locator(".editor-group-container", has_text="Read of other files.md")
    # A separate process makes the page. It takes long, because it loads a tokenizer and torch.
    await expect(page.locator(".view-line", has_text="shapes.py").first).to_be_visible(timeout=3 * PATIENCE_MS)
    await code.run("View: Close All Editors in Group")
    # If the language server ran longer than the service, it would start another service.
    async with code.restart():
        code.configure()
    await until(lambda: not servers(environment["XDG_RUNTIME_DIR"]))


@pytest.mark.parametrize("command", ["lacuna.nextEdit", "lacuna.dismissNextEdit"])
def test_the_keys_of_next_edits_are_free_while_something_else_wants_them(command: str) -> None:
    """vscode#257351: a snippet keeps Tab and Escape, and so do suggestions and several cursors."""
    (when,) = [one["when"] for one in MANIFEST["contributes"]["keybindings"] if one["command"] == command]
    others = ("inSnippetMode", "suggestWidgetVisible", "inlineSuggestionVisible", "editorHasMultipleSelections")
    assert {f"!{name}" for name in others} <= set(when.split(" && "))


def test_the_settings_and_their_defaults_are_those_of_the_server() -> None:
    properties = MANIFEST["contributes"]["configuration"]["properties"]
    defaults = {name.removeprefix("lacuna."): value["default"] for name, value in properties.items()}
    assert defaults.pop("command") == ["lacuna-lsp"]
    assert defaults == msgspec.json.decode(msgspec.json.encode(Settings()))


LIMITS = ("type", "minimum", "maximum", "pattern", "enum")


@pytest.mark.parametrize("field", msgspec.structs.fields(Settings), ids=lambda field: field.encode_name)
def test_a_setting_has_the_servers_limits(field: msgspec.structs.FieldInfo) -> None:
    ours = MANIFEST["contributes"]["configuration"]["properties"][f"lacuna.{field.encode_name}"]
    about = properties(Settings)[field.name]
    either = about.get("anyOf", [about])
    wanted = {name: value for kind in either for name, value in kind.items() if name in LIMITS}
    if len(either) > 1:
        wanted["type"] = [kind["type"] for kind in either]
    found = {name: value for name, value in ours.items() if name in wanted or name in LIMITS[1:]}
    if "enum" in wanted:
        found["enum"].sort()
    assert found == wanted


def test_the_readme_names_every_command_key_and_setting() -> None:
    contributed = MANIFEST["contributes"]
    titles = [command["title"] for command in contributed["commands"]]
    settings = [f"`{name}`" for name in contributed["configuration"]["properties"]]
    assert [name for name in (*titles, *settings) if name not in README] == []
    of_server = {command["command"] for command in contributed["commands"]} & set(COMMANDS)
    unseen = {"lacuna.accepted", "lacuna.acceptedEdit", "lacuna.status", "lacuna.recipes", "lacuna.nextPart"}
    assert set(COMMANDS) - of_server == unseen
