"""The server, settings and edits in a real VS Code: screen, files on disk, requests to the engine.

All are in one window, which takes long to start.
"""

import json
import os
import re
import signal
import urllib.request

from playwright.async_api import expect
from tests.e2e.test_lsp import environment  # noqa: F401 (a fixture)
from tests.lsp.editor import until
from tests.lsp.service import Daemon
from tests.lsp.suggest.test_read_ahead import places

from .vscode import SERVER, VSCode, in_one_window, processes


def metrics(daemon: Daemon) -> str:
    with urllib.request.urlopen(f"{daemon.running.url}/metrics") as answer:
        return str(answer.read())


def servers(mark: str) -> list[str]:
    """The process ids of an editor's own language servers that have ``mark`` in their command line or environment."""
    return [
        id
        for id, command, variables in processes()
        if b"lacuna_lsp" in command and b"--unix" not in command and mark.encode() in command + variables
    ]


@in_one_window
async def test_a_restart_starts_another_server_and_a_projects_file_holds_where_the_user_has_set_nothing(
    code: VSCode, daemon: Daemon
) -> None:
    project = code.folder / "lacuna.toml"
    project.write_text("automatic = false\nmax_tokens = 9\ncandidates = 4\n")
    code.configure(candidates=2)
    mark = str(daemon.folder)
    await until(lambda: len(servers(mark)) == 1)
    before = servers(mark)
    async with code.restart():
        await code.run("Lacuna: Restart Language Server")
    await until(lambda: len(servers(mark)) == 1)
    assert servers(mark) != before
    project.unlink()
    await code.status("ready, .*, suggesting on request")
    await code.open("project.py", "a = ¦\n")
    await code.press("Alt+\\")
    await code.shows("a = «filled»")
    (request,) = daemon.requests
    assert (request["task"]["candidates"], request["regions"][0]["max_tokens"]) == (2, 9)
    async with code.restart():
        await code.run("Lacuna: Restart Language Server")


@in_one_window
async def test_a_server_that_is_missing_or_none_is_reported_once(code: VSCode, daemon: Daemon) -> None:
    await code.open("nowhere.py", "¦\n")
    for command in (["lacuna-lsp-of-nowhere"], "lacuna-lsp-of-nowhere"):  # a text is a program without arguments
        code.configure(command=command)
        await code.shows_message("lacuna-lsp-of-nowhere was not found. Mend lacuna.command, or remove it")
        await code.status("stopped")
        await code.type("a = ")
        await expect(code.boxes).to_have_count(0)
        code.configure()
        await code.status("ready")
    await code.type("b + ")
    await code.shows("a = a = b + «filled»")
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
async def test_a_server_that_hangs_in_its_start_is_ended_by_a_restart(code: VSCode, daemon: Daemon) -> None:
    def hanging() -> list[str]:
        mark = str(daemon.folder).encode()
        return [id for id, command, variables in processes() if command == b"sleep\0001000\0" and mark in variables]

    code.configure(command=["sleep", "1000"])
    await code.status("starting")
    await until(lambda: len(hanging()) == 1)
    before = hanging()
    await code.run("Lacuna: Restart Language Server")
    await until(lambda: len(hanging()) == 1 and hanging() != before)
    code.configure()
    await code.status("ready")
    await until(lambda: not hanging())
    await expect(code.boxes).to_have_count(0)
    await code.open("hung.py", "a = ¦\n")
    await code.press("Alt+\\")
    await code.shows("a = «filled»")


@in_one_window
async def test_a_lost_engine_is_reported_and_reconnected(code: VSCode, own_daemon: Daemon) -> None:
    url = own_daemon.running.url
    async with code.restart():
        code.configure(command=[*SERVER, "--engine", url])
    assert "lacuna_sessions 1" in metrics(own_daemon)
    await code.open("lost.py", "¦\n")
    await until(lambda: places(own_daemon))  # before, VS Code may ask for no suggestion yet
    await code.type("a = ")
    await code.shows("a = «filled»")
    own_daemon.kill()
    await code.shows_message("Lacuna: The connection to the engine broke; it is tried again.")
    await code.status("lost")
    await code.type("b + ")
    await expect(code.boxes).to_have_count(0)
    own_daemon.start(int(url.rpartition(":")[2]))
    await code.status("ready")
    await code.shows("a = b + «filled»")  # what was typed meanwhile gets its suggestion, without another key
    assert own_daemon.requests[-1]["text"] == "a = b + \n"
    assert own_daemon.requests[-1]["task"]["candidates"] == 1
    async with code.restart():
        code.configure()
    await until(lambda: not servers(url))


@in_one_window
async def test_a_server_that_crashed_starts_again_with_the_settings_of_now(code: VSCode, daemon: Daemon) -> None:
    await code.open("crashed.py", "a = ¦\n")
    code.configure(automatic=False, maxTokens=7)
    await code.status("ready, .*, suggesting on request")
    (server,) = servers(str(daemon.folder))
    async with code.restart():
        os.kill(int(server), signal.SIGKILL)
    await code.page.wait_for_timeout(1500)  # a notification would appear in this time
    await expect(code.boxes).to_have_count(0)
    await code.press("Alt+\\")
    await code.shows("a = «filled»")
    assert daemon.requests[-1]["regions"][0]["max_tokens"] == 7


@in_one_window
async def test_an_own_installation_is_set_up_after_a_question_and_its_log_is_shown(
    code: VSCode, daemon: Daemon
) -> None:
    await code.run("Lacuna: Set Up")
    box = code.boxes.filter(has_text="a model (0.5 to 1.6 GB to fetch; 1.1 to 3.3 GB on disk)")
    await box.get_by_role("button", name="Not Now").click()
    await expect(code.boxes).to_have_count(0)
    await code.says("ready")
    await code.run("Lacuna: Open Log of Language Server")
    await code.page.wait_for_selector('.tab.active[data-resource-name="lacuna-lsp.log"]')


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
    await until(lambda: "stopped" in daemon.events)
    await expect(code.boxes).to_have_count(0)
    assert await code.screen() == ["a = <<fill>>"]
    assert file.read_text() == "a = <<fill>>\n"


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
async def test_alternatives_for_a_text_that_has_changed_are_not_shown(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=["old", "width * height"], steps=100, pause=0.02)
    file = await code.open("changed.py", "a = ¦old\nb = 1\n")
    await code.press("Control+d")
    await code.selected("Ln 1, Col 8 (3 selected)")
    await code.press("Control+Alt+l", "r")
    await until(lambda: daemon.requests)
    await code.press("Home", "Enter")
    await code.shows_message("Lacuna: the text has changed meanwhile")
    await expect(code.entry).to_have_count(0)
    await code.saved(file, "\na = old\nb = 1\n")


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
async def test_lines_are_edited_by_an_instruction_after_a_diff(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=["x = 10\n"])
    file = await code.open("told_to.py", "¦x = 1\ny = 2\n")
    for decide in ("Discard Change", "Accept Change"):
        await code.press("Control+Alt+l", "i")
        await code.answer("Lacuna: edit the selection", "ten times")
        await code.compares("x = 1", "x = 10")
        assert file.read_text() == "x = 1\ny = 2\n"
        await code.page.get_by_role("button", name=decide).click()
        await code.decided()
    await code.saved(file, "x = 10\ny = 2\n")
    await code.press("Control+Alt+l", "i")
    daemon.plan(fills=["x = 100\n"])
    await code.answer("Lacuna: edit the selection", "ten times")
    await code.compares("x = 10", "x = 100")
    await code.press("Escape")
    await code.decided()
    assert await code.screen() == ["x = 10", "y = 2"]
    assert daemon.requests[-1]["task"]["instruction"] == "ten times"


@in_one_window
async def test_a_recipe_edits_one_file(code: VSCode, daemon: Daemon) -> None:
    daemon.plan(fills=["Adds two numbers."])
    file = await code.open("recipe.py", "def add(a, b):\n    return a + b\n")
    await code.press("Control+Alt+l", "e")
    await code.choices.filter(has_text="docstrings, 1 place in this file").click()
    await code.choices.filter(has_text=re.compile("^In this file")).click()  # each recipe shows "places in this file"
    await code.compares("    return a + b", '    """Adds two numbers."""')
    await code.press("Control+Enter")
    await code.saved(file, 'def add(a, b):\n    """Adds two numbers."""\n    return a + b\n')


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
