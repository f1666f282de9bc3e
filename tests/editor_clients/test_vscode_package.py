"""What the package of the extension holds, what galleries show of it, and the settings and commands that it names."""

import json
import os
import re
import tomllib
import zipfile
from collections.abc import Iterator

import msgspec
import pytest

from lacuna_lsp.commands import COMMANDS
from lacuna_server.wire.config import Settings

from .vscode import CLIENT, EXTENSION, MANIFEST, ROOT

FILES = {
    "package.json",
    "readme.md",
    "changelog.md",
    "LICENSE.txt",
    "icon.png",
    "screencast.webp",
    "suggestion.png",
    "dist/extension.js",
    "dist/install.py",
    "dist/uninstall.js",
    *(f"walkthrough/{step}.md" for step in ("install", "type", "fill", "edit", "status")),
}


@pytest.fixture(scope="module")
def package() -> Iterator[zipfile.ZipFile]:
    if not EXTENSION.exists():
        missing = "make test packages the extension"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    with zipfile.ZipFile(EXTENSION) as opened:
        yield opened


def text(package: zipfile.ZipFile, name: str) -> str:
    return package.read(f"extension/{name}").decode()


def test_it_has_one_wheel_the_installer_and_what_galleries_show_and_nothing_else(package: zipfile.ZipFile) -> None:
    held = {name.removeprefix("extension/") for name in package.namelist() if name.startswith("extension/")}
    (wheel,) = held - FILES
    assert held - {wheel} == FILES
    assert re.fullmatch(r"dist/wheels/lacuna_code-[\d.]+-py3-none-any\.whl", wheel)
    assert text(package, "dist/install.py") == (ROOT / "editor-clients/install.py").read_text()
    assert text(package, "LICENSE.txt") == (ROOT / "LICENSE").read_text()


def test_the_gallery_has_all_that_the_readme_links_and_one_version(package: zipfile.ZipFile) -> None:
    told = json.loads(text(package, "package.json"))
    links = re.findall(r"\]\((?!https?:|#)([^)]+)\)", text(package, "readme.md"))
    assert links[0] == "suggestion.png"
    assert {f"extension/{link}" for link in links} <= set(package.namelist())
    newest = re.search(r"^## (\S+)", text(package, "changelog.md"), re.MULTILINE)
    assert newest is not None
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert newest[1] == told["version"] == tomllib.load(file)["project"]["version"]
    assert json.loads((CLIENT / "package-lock.json").read_text())["version"] == told["version"]


def test_the_walkthrough_has_a_page_and_a_command_for_every_step(package: zipfile.ZipFile) -> None:
    told = json.loads(text(package, "package.json"))["contributes"]
    commands = {command["command"] for command in told["commands"]} | {"lacuna.openSettings"}
    (walkthrough,) = told["walkthroughs"]
    for step in walkthrough["steps"]:
        named = re.findall(r"\(command:([\w.]+)\)", step["description"])
        assert named
        assert set(named) <= commands
        assert text(package, step["media"]["markdown"])


def test_the_settings_and_their_defaults_are_those_of_the_server() -> None:
    properties = MANIFEST["contributes"]["configuration"]["properties"]
    defaults = {name.removeprefix("lacuna."): value["default"] for name, value in properties.items()}
    assert defaults.pop("command") == ["lacuna-lsp"]
    assert defaults == msgspec.json.decode(msgspec.json.encode(Settings()))


def test_commands_of_the_server_can_be_chosen_only_while_it_runs() -> None:
    registered = re.findall(r'command\("(lacuna\.\w+)"', (CLIENT / "src/extension.ts").read_text())
    assert registered
    of_server = [one for one in MANIFEST["contributes"]["commands"] if one["command"] not in registered]
    assert [one["command"] for one in of_server if "lacuna.running" not in one.get("enablement", "")] == []


def test_the_readme_names_every_command_key_and_setting() -> None:
    contributed, readme = MANIFEST["contributes"], (CLIENT / "README.md").read_text()
    titles = [command["title"] for command in contributed["commands"]]
    settings = [f"`{name}`" for name in contributed["configuration"]["properties"]]
    assert [name for name in (*titles, *settings) if name not in readme] == []
    of_server = {command["command"] for command in contributed["commands"]} & set(COMMANDS)
    unseen = {"lacuna.accepted", "lacuna.acceptedEdit", "lacuna.status", "lacuna.recipes"}
    assert set(COMMANDS) - of_server == unseen
