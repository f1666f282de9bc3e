"""The server, the settings and the manifest of the extension, in a real VS Code."""

import os
import signal
import sys
import urllib.request

import msgspec
import pytest
from playwright.async_api import expect
from tests.e2e.test_lsp import environment  # noqa: F401 (a fixture)
from tests.lsp.editor import until
from tests.lsp.service import Daemon
from tests.lsp.suggest.test_read_ahead import places

from lacuna_lsp.commands import COMMANDS
from lacuna_server.wire.config import Settings, properties

from .conftest import OLD_SERVER
from .vscode import CLIENT, MANIFEST, SERVER, VSCode, in_one_window, processes

README = (CLIENT / "README.md").read_text()


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
async def test_settings_reach_the_server(code: VSCode, daemon: Daemon) -> None:
    await code.open("settings.py", "a = ¦\n")
    code.configure(automatic=False, candidates=2, maxTokens=7, colour="red")
    await code.shows_message("Lacuna: unknown setting lacuna.colour")
    await code.status("ready, .*, suggesting on request")
    await code.press("Alt+\\")
    await code.shows("a = «filled»")
    (request,) = daemon.requests
    assert (request["task"]["candidates"], request["regions"][0]["max_tokens"]) == (2, 7)


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
async def test_a_server_that_is_not_found_is_reported(code: VSCode, daemon: Daemon) -> None:
    code.configure(command=["lacuna-lsp-of-nowhere"])
    await code.shows_message("lacuna-lsp-of-nowhere was not found. Mend lacuna.command, or remove it")
    await code.status("stopped")
    await code.open("nowhere.py", "¦\n")
    await code.type("a = ")
    await expect(code.boxes).to_have_count(0)
    code.configure()
    await code.status("ready")
    await code.type("b + ")
    await code.shows("a = b + «filled»")
    code.configure(command="lacuna-lsp-of-nowhere")  # no list: that of a program
    await code.shows_message("lacuna-lsp-of-nowhere was not found. Mend lacuna.command, or remove it")
    await code.status("stopped")
    code.configure()
    await code.status("ready")


@in_one_window
async def test_a_server_that_is_older_than_the_extension_is_reported(code: VSCode, daemon: Daemon) -> None:
    code.configure(command=[sys.executable, "-c", OLD_SERVER])
    await code.shows_message(
        f"Lacuna: the language server is of version 0.0.9, older than the extension, {MANIFEST['version']}. "
        "Upgrade it: pip install --upgrade lacuna-code."
    )
    await code.status("ready")


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
    await until(lambda: places(own_daemon))  # before, VS Code may ask for no suggestion yet
    await code.type("a = ")
    await code.shows("a = «filled»")
    own_daemon.kill()
    await code.shows_message("Lacuna: The connection to the engine broke; it is tried again (1).")
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
async def test_an_installation_of_the_users_own_is_set_up_after_a_question(code: VSCode, daemon: Daemon) -> None:
    await code.run("Lacuna: Set Up")
    box = code.boxes.filter(has_text="a model (0.5 to 1.6 GB to fetch; 1.1 to 3.3 GB on disk)")
    await box.get_by_role("button", name="Not Now").click()
    await expect(code.boxes).to_have_count(0)
    await code.says("ready")


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
