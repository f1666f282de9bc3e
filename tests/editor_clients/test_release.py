"""``make release``: what was built is gathered in one folder, if all versions agree."""

import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from .vscode import ROOT

WHEEL = "lacuna_code-{}-py3-none-manylinux_2_28_x86_64.whl"
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [1.2.0] - 2026-01-02\n\n- faster\n\n## [1.1.0]\n\n- old\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A clone in which everything is built, of version 1.2.0."""
    client = tmp_path / "editor-clients/vscode"
    files = {
        tmp_path / "pyproject.toml": '[project]\nversion = "1.2.0"\n',
        tmp_path / "CHANGELOG.md": CHANGELOG,
        client / "package.json": json.dumps({"version": "1.2.0"}),
        client / "package-lock.json": json.dumps({"version": "1.2.0"}),
        client / "dist/lacuna-linux-x64.vsix": "vsix",
        tmp_path / "dist" / WHEEL.format("1.2.0"): "wheel",
        tmp_path / "dist" / WHEEL.format("1.1.0"): "old wheel",
        tmp_path / "dist/lacuna.nvim/lua/lacuna.lua": "lua",
        tmp_path / "dist/lacuna.nvim/wheels" / WHEEL.format("1.2.0"): "wheel",
    }
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return tmp_path


def release(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "editor-clients/release.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_all_that_is_published_is_in_one_folder_with_checksums_and_notes(root: Path) -> None:
    for _ in range(2):
        assert release(root).returncode == 0
    folder = root / "dist/release"
    packages = {WHEEL.format("1.2.0"), "lacuna-1.2.0-linux-x64.vsix", "lacuna.nvim-1.2.0.tar.gz"}
    assert {file.name for file in folder.iterdir()} == packages | {"NOTES.md", "SHA256SUMS"}
    assert (folder / "NOTES.md").read_text() == "# Lacuna 1.2.0\n\n- faster\n"
    sums = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (*packages, "NOTES.md")}
    with tarfile.open(folder / "lacuna.nvim-1.2.0.tar.gz") as packed:
        assert "lacuna.nvim/lua/lacuna.lua" in packed.getnames()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("editor-clients/vscode/package.json", '{"version": "1.1.0"}', "package.json has 1.1.0"),
        ("dist/lacuna.nvim/wheels/lacuna_code-1.1.0-py3-none-any.whl", "old", "holds lacuna_code-1.1.0-"),
        ("editor-clients/vscode/dist/lacuna-linux-x64.vsix", None, "nothing is built for version 1.2.0"),
    ],
)
def test_what_does_not_fit_together_is_no_release(root: Path, file: str, content: str | None, said: str) -> None:
    (root / file).unlink(missing_ok=True)
    if content is not None:
        (root / file).write_text(content)
    ended = release(root)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert not (root / "dist/release").exists()
