"""``:Lacuna setup`` in a real Neovim, with a small wheel in place of Lacuna's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.editor_clients.neovim import PLUGIN
from tests.editor_clients.small_wheel import SERVER, make_wheel
from tests.editor_clients.test_install import INSTALLER
from tests.neovim import BIN

# Answers the question, waits for the end of the setup and prints what was said, and what starts the server then.
RUN = """
vim.fn.confirm = function() return 1 end
local said = {}
vim.notify = function(line) table.insert(said, line) end
vim.cmd('Lacuna setup')
local ends = { 'set up with', 'goes on from here', 'neither uv', 'no wheel' }
vim.wait(200000, function()
  local all = table.concat(said)
  return vim.iter(ends):any(function(one) return all:find(one, 1, true) ~= nil end)
end, 50)
io.stdout:write(table.concat(said, '\\n'), '\\n', table.concat(vim.lsp.config.lacuna.cmd, ' '))
"""
# Prints the warning about the language server.
CHECK = """
vim.notify = function(line) io.stdout:write(line, '\\n') end
require('lacuna.server').check()
"""


def laid_out(folder: Path) -> Path:
    """The plugin as `make neovim` lays it out, without wheels."""
    shutil.copytree(PLUGIN, folder / "lacuna.nvim")
    (folder / "lacuna.nvim" / "wheels").mkdir()
    shutil.copy(INSTALLER, folder / "lacuna.nvim" / "wheels")
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
    return folder / "lacuna.nvim"


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    return laid_out(tmp_path)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A plugin that has installed its wheel from nothing, and what it has said."""
    plugin = laid_out(tmp_path_factory.mktemp("first"))
    make_wheel(plugin / "wheels")
    return plugin, run(plugin)


@pytest.fixture
def installed(plugin: Path, first: tuple[Path, str]) -> Path:
    """The plugin with a wheel that is installed."""
    make_wheel(plugin / "wheels")
    shutil.copytree(first[0].parent / "data/nvim/lacuna", plugin.parent / "data/nvim/lacuna", symlinks=True)
    (plugin.parent / "data/nvim/lacuna/done").unlink()
    return plugin


def run(plugin: Path, lua: str = RUN) -> str:
    """What a script prints in a Neovim with the plugin."""
    script = plugin.with_name("run.lua")
    script.write_text(lua)
    home = str(plugin.parent)
    environment = {"HOME": home, "XDG_DATA_HOME": f"{home}/data", "PATH": f"{home}/bin", "PIP_NO_INDEX": "1"}
    command = [str(BIN / "nvim"), "--headless", "-u", "NONE", "--cmd", f"set rtp^={plugin}"]
    command += ["-c", "runtime plugin/lacuna.lua", "-c", f"luafile {script}", "-c", "qa!"]
    ended = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=True
    )
    return ended.stdout


def test_it_installs_the_wheel_and_the_model_and_the_server_is_found_afterwards(first: tuple[Path, str]) -> None:
    plugin, said = first
    assert "Lacuna: set up with setup --yes --json" in said
    python = plugin.parent / "data/nvim/lacuna/venv/bin/python"
    assert said.endswith(f"{python} -I -m lacuna_lsp")
    (plugin / "wheels" / "lacuna_code-0.1.0-py3-none-any.whl").unlink()
    again = run(plugin)
    assert "Lacuna: set up with setup --yes --json" in again
    assert again.endswith(f"{python} -I -m lacuna_lsp")


def test_an_installation_that_fails_is_one_line_and_the_next_one_goes_on(installed: Path) -> None:
    make_wheel(installed / "wheels", server="import sys\nsys.exit('lacuna: no space left in X')\n")
    said = run(installed)
    assert "setup: no space left in X; :Lacuna setup goes on from here" in said
    assert said.endswith("lacuna-lsp")
    make_wheel(installed / "wheels")
    assert "Lacuna: set up with setup --yes --json" in run(installed)


def test_what_is_missing_is_said(plugin: Path) -> None:
    assert f"Lacuna: there is no wheel in {plugin}/wheels: " in run(plugin)
    make_wheel(plugin / "wheels")
    (plugin.parent / "bin" / "python3").unlink()
    assert "Lacuna: neither uv nor Python 3.11 or newer is on the path" in run(plugin)


def test_a_plugin_with_another_wheel_takes_the_place_of_the_old_server(installed: Path) -> None:
    run(installed)
    make_wheel(installed / "wheels", server=SERVER.replace('" ".join(sys.argv[1:])', '"a newer server"'))
    assert "the language server is not of this version of the plugin, see :checkhealth lacuna" in run(installed, CHECK)
    assert "Lacuna: set up with a newer server" in run(installed)
    assert "not of this version" not in run(installed, CHECK)
