"""What the package of the extension holds, and what the galleries show of it."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator

import pytest

from .vscode import CLIENT, EXTENSION, ROOT

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


def test_the_gallery_has_an_icon_a_licence_a_picture_and_what_is_new(package: zipfile.ZipFile) -> None:
    told = json.loads(text(package, "package.json"))
    assert told["license"] == "Apache-2.0"
    assert {"publisher", "displayName", "description", "categories", "keywords", "galleryBanner"} <= told.keys()
    icon = package.read(f"extension/{told['icon']}")
    assert icon.startswith(b"\x89PNG")
    assert min(int.from_bytes(icon[place : place + 4]) for place in (16, 20)) >= 128  # its width and height
    links = re.findall(r"\]\((?!https?:|#)([^)]+)\)", text(package, "readme.md"))
    assert links[0] == "suggestion.png"
    assert {f"extension/{link}" for link in links} <= set(package.namelist())
    newest = re.search(r"^## (\S+)", text(package, "changelog.md"), re.MULTILINE)
    assert newest is not None
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert newest[1] == told["version"] == tomllib.load(file)["project"]["version"]


def test_the_walkthrough_has_a_page_and_a_command_for_every_step(package: zipfile.ZipFile) -> None:
    told = json.loads(text(package, "package.json"))["contributes"]
    commands = {command["command"] for command in told["commands"]} | {"lacuna.openSettings"}
    (walkthrough,) = told["walkthroughs"]
    for step in walkthrough["steps"]:
        named = re.findall(r"\(command:([\w.]+)\)", step["description"])
        assert named
        assert set(named) <= commands
        assert text(package, step["media"]["markdown"])


def test_packages_are_made_for_platforms_that_vs_code_knows() -> None:
    command = [sys.executable, "kernels/platforms.py", "--vscode"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    known = (CLIENT / "node_modules/@vscode/vsce/out/package.js").read_text()
    processors = {"x64": "(x86_64|amd64)", "arm64": "(aarch64|arm64)"}
    systems = {"linux": "manylinux", "darwin": "macosx", "win32": "win"}
    assert len(listed) == 4
    for pair in listed:
        wheel, target = pair.split(":")
        assert f"'{target}'" in known
        system, processor = target.split("-")
        assert re.fullmatch(f"{systems[system]}.*{processors[processor]}", wheel)
