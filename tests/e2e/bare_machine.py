"""Installs Lacuna as a newcomer does, into a new folder, and times every step to the first suggestion.

``python -m tests.e2e.bare_machine FOLDER`` clones this repository into the folder and follows the READMEs with empty
caches: a virtual environment, ``pip install``, ``lacuna models pull``, then a suggestion in Neovim and in VS Code.
Neovim and VS Code themselves are those that ``make test`` installs; they are not counted.

``--wheel FILE`` installs a wheel of ``make wheels`` instead, with neither a compiler, git nor Node on the path, runs
``lacuna setup``, and waits for a suggestion in Neovim; ``--vsix FILE`` lets an extension of ``make vscode`` install
itself in the same way. Each has caches of its own.
"""

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.test_lsp import without_service
from tests.editor_clients import neovim, vscode
from tests.lsp.editor import until

ROOT = Path(__file__).parents[2]
HEAD = "def area(width, height):\n    return "
LOADED_S = 300.0
UNITS = {"kB": 1e-3, "MB": 1.0, "GB": 1e3}


@contextmanager
def timed(step: str) -> Iterator[None]:
    """Print the seconds of a step."""
    began = time.monotonic()
    yield
    print(f"{time.monotonic() - began:7.1f} s  {step}", flush=True)


def size(step: str, *folders: Path) -> None:
    """Print the size of folders on disk."""
    listed = subprocess.run(["du", "-scm", *map(str, folders)], check=True, capture_output=True, text=True)
    print(f"{listed.stdout.split()[-2]:>7} MB {step}", flush=True)


def fetched(what: str, environment: Mapping[str, str]) -> None:
    """Print the megabytes of the wheels that pip has fetched since the last call, from the index or a local folder."""
    file = Path(environment["PIP_LOG"])
    log = file.read_text()
    file.unlink()
    by_network = re.findall(r" Downloading \S+\.(?:whl|gz) \(([\d.]+) (kB|MB|GB)\)", log)
    local = {one for one in re.findall(r" Processing (\S+\.whl)", log) if Path(one).is_file()}
    size = sum(float(number) * UNITS[unit] for number, unit in by_network)
    print(f"{size + sum(os.stat(one).st_size / 1e6 for one in local):7.0f} MB fetched by pip: {what}", flush=True)


def alone(folder: Path, environment: Mapping[str, str]) -> Mapping[str, str]:
    """An environment with nothing but Python on the path."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python3.11").symlink_to(os.path.realpath(sys.executable))
    return {**environment, "PATH": str(folder / "bin"), "LACUNA_CACHE": str(folder / "cache")}


def install(folder: Path, what: str, model: Sequence[str], environment: Mapping[str, str]) -> None:
    """Install into a virtual environment of the folder, then fetch the model with a command of Lacuna."""

    def run(*command: str) -> None:
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)

    with timed("python3 -m venv .venv"):
        run("python3.11", "-m", "venv", ".venv")
    with timed(f"pip install {what}"):
        run(str(folder / ".venv/bin/python"), "-m", "pip", "install", "--progress-bar", "off", *what.split())
    fetched("the programs", environment)
    size(".venv", folder / ".venv")
    with timed(f"lacuna {' '.join(model)}"):
        run(str(folder / ".venv/bin/lacuna"), *model)
    fetched("the models", environment)
    size_of_models(environment)


def size_of_models(environment: Mapping[str, str]) -> None:
    """Print the sizes of the model and of what is made for it."""
    cache = Path(environment["LACUNA_CACHE"])
    size("weights", cache / "models")
    made = [cache / name for name in ("prepared", "kernels") if (cache / name).exists()]
    size("their prepared form and the compiled kernels", *made)


async def in_neovim(folder: Path, command: Path, environment: Mapping[str, str]) -> None:
    """Open a file, type in it and wait for a suggestion."""
    folder.mkdir()
    init = f"vim.lsp.config('lacuna', {{ cmd = {{ {str(command)!r} }} }})"
    (folder / "area.py").write_text(f"{HEAD}\n")
    with timed("Neovim: from its start to a suggestion, no engine running"):
        async with neovim.running(environment, folder, init) as nvim:
            await nvim.command("edit area.py")
            await until(lambda: nvim.shows("Lacuna: ready"), LOADED_S)
            await nvim.keys("jA")
            await nvim.keys("w")
            await until(lambda: nvim.ghost, LOADED_S)
            print(f"           {HEAD.splitlines()[-1]}w«{nvim.ghost}»")


async def in_vs_code(folder: Path, clone: Path, command: Path, environment: Mapping[str, str]) -> None:
    """Package the extension, install it in a new VS Code, type in a file and wait for a suggestion."""
    folder.mkdir()
    vsix = "editor-clients/vscode/dist/lacuna.vsix"
    with timed("make lacuna.vsix (npm install, package)"):
        subprocess.run(["make", vsix], cwd=clone, env=environment, check=True, capture_output=True)
    size("node_modules of the extension", clone / "editor-clients/vscode/node_modules")
    size("lacuna.vsix", clone / vsix)
    vscode.EXTENSION = clone / vsix
    names = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME")
    settings = {"lacuna.command": ["env", *(f"{name}={environment[name]}" for name in names), str(command)]}
    with timed("VS Code: from the installation of the extension to a suggestion, no engine running"):
        async with vscode.running(folder, environment, settings=settings) as code:
            await suggested(code)


async def suggested(code: vscode.VSCode) -> None:
    """Type in a file and wait for a suggestion."""
    await code.open("area.py", f"{HEAD}¦\n")
    await code.page.wait_for_function("() => states.at(-1)?.includes('Lacuna: ready')", timeout=LOADED_S * 1000)
    await code.type("w")
    await code.page.wait_for_selector(".ghost-text, [class*=ghost-text]", timeout=LOADED_S * 1000)
    print(f"           {(await code.screen())[1]}")


async def set_up_by_vs_code(folder: Path, vsix: Path, environment: Mapping[str, str]) -> None:
    """Let the extension install the server and the model in a new VS Code, and wait for a suggestion."""
    vscode.EXTENSION = vsix
    size(vsix.name, vsix)
    with timed("VS Code: from the installation of the extension to a suggestion"):
        async with vscode.running(folder, environment, settings={"lacuna.command": None}) as code:
            with timed("VS Code: the setup of programs and model"):
                await code.boxes.get_by_role("button", name="Install").click()
                done = folder / "data/User/globalStorage/lacuna.lacuna/done"
                await until(done.exists, 2 * LOADED_S)
            await suggested(code)
    fetched("uv, which fetches the programs, and the models", environment)
    size("storage of the extension", done.parent)
    size_of_models(environment)


def main() -> None:
    """Run all steps and print their times and sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a new folder; it takes about 4 GB and stays")
    parser.add_argument("--wheel", type=Path, help="install this wheel, not a clone, for Neovim")
    parser.add_argument("--vsix", type=Path, help="let this extension install itself, not a clone, in VS Code")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True)
    clone, command = folder / "lacuna", folder / "lacuna/.venv/bin/lacuna-lsp"
    own = {"PIP_NO_CACHE_DIR": "1", "npm_config_cache": str(folder / "npm"), "LACUNA_CACHE": str(folder / "cache")}
    own |= {"XDG_CONFIG_HOME": str(folder / "config"), "LACUNA_STATE": str(folder / "state")}
    own |= {"PIP_LOG": str(folder / "pip.log")}
    if given.wheel is None and given.vsix is None:
        with timed("git clone"):
            subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        install(clone, ".", ("models", "pull"), os.environ | own)
        with without_service() as environment:
            asyncio.run(in_neovim(folder / "neovim", command, {**environment, **own}))
        with without_service() as environment:
            asyncio.run(in_vs_code(folder / "vscode", clone, command, {**environment, **own}))
    if given.wheel is not None:
        with without_service() as environment:
            bare = alone(clone, {**environment, **own})
            install(clone, f"--no-compile {given.wheel.resolve()}", ("setup", "--yes"), bare)
            subprocess.run([clone / ".venv/bin/lacuna", "stop"], env=bare, check=True)
            asyncio.run(in_neovim(folder / "neovim", command, bare))
    if given.vsix is not None:
        with without_service() as environment:
            bare = alone(folder / "vscode", {**environment, **own})
            asyncio.run(set_up_by_vs_code(folder / "vscode", given.vsix.resolve(), bare))
    shutil.rmtree(folder / "npm", ignore_errors=True)


if __name__ == "__main__":
    main()
