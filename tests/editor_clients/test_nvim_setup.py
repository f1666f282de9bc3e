"""``:Lacuna setup`` in a real Neovim, with a small wheel in place of Lacuna's own."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.editor_clients.neovim import BIN, PLUGIN

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
SERVER = """
import json, sys
def main():
    print(json.dumps({"model": " ".join(sys.argv[1:])}))
if __name__ == "__main__":
    main()
"""


def make_wheel(folder: Path) -> None:
    """A wheel with the name of Lacuna's, whose command line tells its arguments."""
    about = "lacuna_code-0.1.0.dist-info"
    files = {
        "lacuna_server/__init__.py": "",
        "lacuna_server/__main__.py": SERVER,
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: lacuna-code\nVersion: 0.1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\nlacuna-lsp = lacuna_server.__main__:main\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(folder / "lacuna_code-0.1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{about}/RECORD": record}.items():
            wheel.writestr(name, text)


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """The plugin as `make neovim` lays it out, without wheels."""
    shutil.copytree(PLUGIN, tmp_path / "lacuna.nvim")
    (tmp_path / "lacuna.nvim" / "wheels").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
    return tmp_path / "lacuna.nvim"


def run(plugin: Path) -> str:
    script = plugin.with_name("run.lua")
    script.write_text(RUN)
    home = str(plugin.parent)
    environment = {"HOME": home, "XDG_DATA_HOME": f"{home}/data", "PATH": f"{home}/bin", "PIP_NO_INDEX": "1"}
    command = [str(BIN / "nvim"), "--headless", "-u", "NONE", "--cmd", f"set rtp^={plugin}"]
    command += ["-c", "runtime plugin/lacuna.lua", "-c", f"luafile {script}", "-c", "qa!"]
    ended = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=True
    )
    return ended.stdout


def test_it_installs_the_wheel_and_the_model_and_the_server_is_found_afterwards(plugin: Path) -> None:
    make_wheel(plugin / "wheels")
    said = run(plugin)
    assert "Lacuna: set up with setup --yes --json" in said
    python = plugin.parent / "data/nvim/lacuna/bin/python"
    assert said.endswith(f"{python} -I -m lacuna_lsp")
    (plugin / "wheels" / "lacuna_code-0.1.0-py3-none-any.whl").unlink()
    again = run(plugin)
    assert "Lacuna: set up with setup --yes --json" in again
    assert again.endswith(f"{python} -I -m lacuna_lsp")


def test_an_installation_that_fails_is_one_line_and_the_next_one_goes_on(plugin: Path) -> None:
    wheel = plugin / "wheels" / "lacuna_code-0.1.0-py3-none-any.whl"
    wheel.write_bytes(b"half a wheel")
    said = run(plugin)
    assert "; :Lacuna setup goes on from here" in said
    assert said.endswith("lacuna-lsp")
    wheel.unlink()
    make_wheel(plugin / "wheels")
    assert "Lacuna: set up with setup --yes --json" in run(plugin)


def test_what_is_missing_is_said(plugin: Path) -> None:
    assert f"Lacuna: there is no wheel in {plugin}/wheels: " in run(plugin)
    make_wheel(plugin / "wheels")
    (plugin.parent / "bin" / "python3").unlink()
    assert "Lacuna: neither uv nor Python 3.11 or newer is on the path" in run(plugin)
