"""The server, settings, messages and documents of the plugin in a real Neovim."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec
import pytest_asyncio
from tests.lsp.editor import until
from tests.lsp.service import Daemon

from lacuna_server.wire.config import Settings

from .conftest import begun
from .neovim import AT_ONCE, BIN, PLUGIN, Neovim, running


@pytest_asyncio.fixture
async def alone(daemon: Daemon, tmp_path: Path) -> AsyncIterator[Neovim]:
    """A Neovim that starts a language server of its own."""
    async for nvim in begun(daemon, tmp_path):
        yield nvim


async def test_a_message_wider_than_the_screen_does_not_wait_for_a_key(nvim: Neovim) -> None:
    name = "code-" + 60 * "x" + ".py"
    file = await nvim.start(name, "a = <<fill>>\n")
    await nvim.command("set nomodifiable")
    await nvim.command("Lacuna fill")
    await nvim.wait("Lacuna: Fill 1 place: nothing was edited, code-xxx")
    await nvim.wait("…")
    assert await nvim.request("nvim_get_mode") == {"mode": "n", "blocking": False}
    assert f"{name} is not modifiable" in await nvim.lua("return vim.fn.execute('messages')")
    assert await nvim.saved(file) == "a = <<fill>>\n"


async def test_an_unreachable_engine_is_reported(daemon: Daemon, tmp_path: Path) -> None:
    init = AT_ONCE + "vim.lsp.config('lacuna', { cmd = { 'lacuna-lsp', '--engine', 'http://127.0.0.1:9' } })"
    async with running(daemon.environment, tmp_path, init) as nvim:
        (tmp_path / "code.py").write_text("value = <<fill>>\n")
        await nvim.command("edit code.py")
        await nvim.wait("Lacuna: No engine: http://127.0.0.1:9 does not answer")
        await nvim.wait("Lacuna: unreachable")
        await nvim.command("Lacuna fill")
        await nvim.wait("Lacuna: no engine yet: http://127.0.0.1:9 does not answer")
        await nvim.command("Lacuna status")
        await nvim.wait("start the engine with")
        await until(lambda: "Lacuna: unreachable, http://127.0.0.1:9 does not answer" in nvim.drawn("LacunaError"))
        assert nvim.drawn("LacunaError").endswith("Lacuna: unreachable")  # in the status line
        await nvim.command("checkhealth lacuna")
        await nvim.wait("ERROR running in")
        await nvim.wait("start the engine with")


async def test_the_state_is_shown_while_the_model_loads_and_a_command_waits(own_daemon: Daemon, tmp_path: Path) -> None:
    own_daemon.restart(hold=True)
    # With an explicit address, the server does not start another engine when this one ends.
    engine = f"vim.lsp.config('lacuna', {{ cmd = {{ 'lacuna-lsp', '--engine', '{own_daemon.running.url}' }} }})"
    async with running(own_daemon.environment, tmp_path, AT_ONCE + engine) as nvim:
        (tmp_path / "code.py").write_text("value = \nother = <<fill>>\n")
        await nvim.command("set laststatus=0 | edit code.py")
        await nvim.wait("Lacuna: half of it is there 50%")
        await nvim.keys("A")
        # Without a status line, and where Neovim shows no messages.
        await until(lambda: nvim.drawn("LacunaCount") == "Lacuna: half of it is there 50%")
        await nvim.keys("<M-\\>")
        await nvim.wait("nothing to suggest here (Lacuna: half of it is there 50%)")
        await nvim.keys("<Esc>")
        await nvim.command("set laststatus=2 | Lacuna fill")
        await nvim.wait("Fill 1 place: waits for the engine, half of it is there 50%")
        await nvim.keys("A")
        own_daemon.plan()
        await nvim.wait("Lacuna: ready")
        await nvim.wait_lines("value = ", "other = filled")
        await nvim.wait_ghost("filled")  # the user presses no other key
        own_daemon.kill()
        await nvim.wait("Lacuna: lost")
        await nvim.keys("<Esc>")  # Neovim shows the message after insert mode
        await nvim.wait("The connection to the engine broke; it is tried again.")


async def test_a_command_right_after_the_start_waits_for_the_language_server(alone: Neovim) -> None:
    (alone.folder / "code.py").write_text("ä = <<fill>>\n")
    await alone.command("edit code.py | Lacuna fill")
    await alone.told("Lacuna: the language server is starting, this goes on then")
    await alone.wait_lines("ä = filled")


async def test_settings_reach_the_server_from_the_beginning_and_unknown_ones_are_reported(
    daemon: Daemon, tmp_path: Path
) -> None:
    model = "model = 'qwen2.5-coder-1.5b'"
    settings = f"{{ lacuna = {{ debounce = false, maxTokens = 7, multiline = 'always', typo = 1, {model} }} }}"
    (tmp_path / "lacuna.toml").write_text("max_lines = 9\n")
    (tmp_path / ".git").mkdir()
    async with running(daemon.environment, tmp_path, f"vim.lsp.config('lacuna', {{ settings = {settings} }})") as nvim:
        await nvim.start("code.py", "value = \n")
        await nvim.told("Lacuna: unknown setting lacuna.typo")
        await nvim.told("Lacuna: the running service has the model qwen2.5-coder-0.5b")
        await nvim.keys("A")
        await nvim.wait_ghost("filled")
        (region,) = daemon.requests[0]["regions"]
        assert (region["max_tokens"], region["max_lines"]) == (7, 9)


async def test_suggestions_can_be_turned_off_or_limited_to_requests(nvim: Neovim) -> None:
    await nvim.start("code.py", "value = \n")
    await nvim.command("Lacuna toggle automatic")
    await nvim.wait("Lacuna: on request")
    await nvim.keys("A")
    await nvim.keys("<M-\\>")
    await nvim.wait_ghost("filled")
    await nvim.keys("f")
    await nvim.wait_ghost("illed")
    await nvim.keys("<BS><Esc>")
    await nvim.command("Lacuna toggle")
    await nvim.wait("Lacuna: off")
    await nvim.command("Lacuna status")
    await nvim.wait("Lacuna: off, qwen2.5-coder-0.5b")
    await nvim.keys("A<M-\\>")
    await nvim.wait("nothing to suggest here (suggestions are turned off)")
    await nvim.keys("<Space>")
    await nvim.gone("nothing")
    await nvim.keys("<BS><Esc>")
    await nvim.command("Lacuna status")
    await nvim.wait("the last request got nothing: suggestions are turned off")
    await nvim.keys("h")
    await nvim.command("Lacuna toggle")
    await nvim.command("Lacuna toggle automatic")
    await nvim.keys("A")
    await nvim.wait_ghost("filled")


async def test_what_a_file_of_the_project_turns_off_is_shown_and_toggled(nvim: Neovim) -> None:
    (nvim.folder / "lacuna.toml").write_text("enabled = false\n")
    (nvim.folder / ".git").mkdir()
    (nvim.folder / "code.py").write_text("value = \n")
    await nvim.command("edit code.py")
    await nvim.wait("Lacuna: off")
    await nvim.command("Lacuna toggle")
    await nvim.wait("Lacuna: ready")
    await nvim.keys("A")
    await nvim.wait_ghost("filled")


async def test_the_restart_command_starts_another_server_and_what_was_turned_off_stays_so(alone: Neovim) -> None:
    await alone.start("code.py", "value = \n")
    await alone.command("Lacuna toggle automatic")
    await alone.wait("Lacuna: on request")
    first = await alone.lua("return vim.lsp.get_clients()[1].id")
    await alone.command("Lacuna restart")
    another = f"function() local one = vim.lsp.get_clients()[1]; return one and one.id ~= {first} end"
    gone = f"function() return not vim.lsp.get_client_by_id({first}) end"
    for change in (gone, another):
        assert await alone.lua(f"return vim.wait(30000, {change})")
    assert await alone.lua("return vim.lsp.get_clients()[1].settings.lacuna.automatic == false")
    await alone.command("Lacuna toggle automatic")
    await alone.wait("Lacuna: ready")
    await alone.keys("A")
    await alone.wait_ghost("filled")
    assert await alone.lua("return #vim.lsp.get_clients()") == 1


async def test_a_server_that_hangs_in_its_start_can_be_restarted(daemon: Daemon, tmp_path: Path) -> None:
    hangs = "vim.lsp.config('lacuna', { cmd = { 'sleep', '1000' } })"
    async with running(daemon.environment, tmp_path, f"{AT_ONCE}\n{hangs}") as nvim:
        (tmp_path / "code.py").write_text("value = \n")
        await nvim.command("edit code.py")
        ids = "vim.tbl_map(function(one) return one.id end, vim.lsp.get_clients({ _uninitialized = true }))"
        assert await nvim.lua(f"return vim.wait(30000, function() return #{ids} == 1 end)")
        (first,) = await nvim.lua(f"return {ids}")
        await nvim.lua("vim.lsp.config('lacuna', { cmd = { 'lacuna-lsp' } })")
        await nvim.command("Lacuna restart")
        await nvim.wait("Lacuna: ready")
        assert await nvim.lua(f"return vim.wait(30000, function() return #{ids} == 1 end)")
        assert await nvim.lua(f"return {ids}") != [first]


async def test_a_neovim_that_is_too_old_is_reported(daemon: Daemon, tmp_path: Path) -> None:
    async with running(daemon.environment, tmp_path, "vim.lsp.is_enabled = nil") as nvim:
        (tmp_path / "code.py").write_text("value = \n")
        await nvim.command("edit code.py")
        await nvim.told("Lacuna needs Neovim 0.11.2 or newer")
        assert "Error" not in await nvim.lua("return vim.fn.execute('messages')")
        await nvim.command("checkhealth lacuna")
        await nvim.wait("ERROR Neovim 0.11.2 or newer is needed")


async def test_a_missing_server_is_reported(nvim: Neovim) -> None:
    await nvim.keys("iabc")
    await nvim.wait("abc")
    await nvim.keys("<M-\\>")
    await nvim.wait("abc nothing to suggest here (no language server is running for this file)")
    await nvim.keys("d")
    await nvim.gone("nothing to suggest")


async def test_the_readme_installs_the_plugin_in_an_empty_home_folder(daemon: Daemon, tmp_path: Path) -> None:
    readme = (PLUGIN / "README.md").read_text()
    first, second, *own = readme.partition("## Installation")[2].split("```\n")[1].splitlines()
    assert (first, second) == ("pip install .", "lacuna models pull")
    home = {name: value for name, value in daemon.environment.items() if not name.startswith("XDG_CONFIG")}
    home |= {"HOME": str(tmp_path), "PATH": f"{BIN}{os.pathsep}{home['PATH']}"}
    subprocess.run(["bash", "-ec", "\n".join(own)], env=home, cwd=PLUGIN.parents[1], check=True)
    assert await is_ready(home, tmp_path)


async def is_ready(environment: Mapping[str, str], home: Path) -> bool:
    """Start Neovim on a Python file, with the configuration in a home folder; return whether the engine gets ready."""
    (home / "code.py").write_text("value = 1\n")
    ready = "vim.wait(30000, function() return require('lacuna').statusline() == 'Lacuna: ready' end)"
    quit_well = f"if {ready} then vim.cmd.qall() else vim.cmd.cquit() end"
    command = [BIN / "nvim", "--headless", "-n", "-i", "NONE", "code.py", "-c", f"lua {quit_well}"]
    ended = await asyncio.create_subprocess_exec(*command, env=environment, cwd=home)
    return await ended.wait() == 0


async def test_a_running_command_can_be_cancelled(nvim: Neovim, daemon: Daemon) -> None:
    daemon.plan(steps=500, pause=0.02)
    file = await nvim.start("code.py", "a = <<fill>>\n")
    await nvim.command("Lacuna fill")
    await until(lambda: nvim.screen.count("Fill 1 place") == 2)  # in the status line and in the command line
    await until(lambda: daemon.requests)
    await nvim.command("Lacuna cancel")
    await nvim.wait("Lacuna: ready")
    await nvim.wait("Lacuna: cancelled, nothing was edited")
    assert await nvim.saved(file) == "a = <<fill>>\n"


async def test_the_status_log_health_check_and_completion_of_commands_work(nvim: Neovim) -> None:
    await nvim.start("code.py", "value = \n")
    for line in ("Lacuna status", "Lacuna"):
        await nvim.command(line)
        await nvim.wait("Lacuna: ready, qwen2.5-coder-0.5b")
        await nvim.wait("suggestions: 0 wanted, 0 held back as unsure")
        await nvim.keys("l")
        await nvim.gone("held back")
    await nvim.command("Lacuna nonsense")
    await nvim.wait("Lacuna: there is no command nonsense")
    await nvim.command("checkhealth lacuna")
    await nvim.wait("OK the language server is there")
    await nvim.wait("ready")
    assert not nvim.shows("WARNING")
    await nvim.command("tabonly | edit code.py")
    await nvim.command("Lacuna log")
    await nvim.wait("lacuna-lsp.log")
    complete = "return vim.fn.getcompletion(..., 'cmdline')"
    assert await nvim.lua(complete, "Lacuna re") == ["recipes", "refactor", "regenerate", "restart"]
    assert await nvim.lua(complete, "Lacuna fill ") == ["bodies", "markers"]
    assert await nvim.lua(complete, "Lacuna log ") == []


async def test_the_status_line_says_while_suggestions_are_snoozed(nvim: Neovim) -> None:
    await nvim.start("code.py", "value = \n")
    await nvim.command("Lacuna snooze 5")
    await nvim.wait("Lacuna: snoozed")
    await nvim.command("Lacuna snooze 0")
    await nvim.wait("Lacuna: ready")


async def test_the_help_documents_every_command_key_and_setting(nvim: Neovim) -> None:
    text = (PLUGIN / "doc/lacuna.txt").read_text()
    for name in await nvim.lua("return vim.fn.getcompletion('Lacuna ', 'cmdline')"):
        assert f"*:Lacuna-{name}*" in text
    for name in re.findall(r"'(<Plug>\(.*?\))'", (PLUGIN / "plugin/lacuna.lua").read_text()):
        assert name in text
    shutil.copy(PLUGIN / "doc/lacuna.txt", nvim.folder)
    await nvim.request("nvim_command", f"helptags {nvim.folder}")
    assert (PLUGIN / "doc/tags").read_text() == (nvim.folder / "tags").read_text()  # :help works without :helptags
    for setting in msgspec.structs.fields(Settings):
        assert re.search(rf"^    {setting.encode_name}\b", text, re.MULTILINE)
