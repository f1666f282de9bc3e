"""Gathers a release in one folder: wheels, extensions, the plugin for Neovim, checksums and notes.

``python editor-clients/release.py ROOT`` (what ``make release`` runs last) takes what the other targets have built from
ROOT, and fails where versions differ or something is missing. The folder is ``dist/release``: publishing is one upload
of each of its files.
"""

import hashlib
import json
import re
import shutil
import sys
import tarfile
import tomllib
from pathlib import Path

NOTES, SUMS = "NOTES.md", "SHA256SUMS"


def main(root: Path) -> None:
    """Make the folder anew, and print what it holds. Exits with one line where something does not fit together."""
    version = _version(root)
    wheels = sorted((root / "dist").glob(f"lacuna_code-{version}-*.whl"))
    extensions = sorted((root / "editor-clients/vscode/dist").glob("lacuna-*.vsix"))
    plugin = root / "dist/lacuna.nvim"
    held = [wheel.name for wheel in (plugin / "wheels").glob("*.whl")]
    for what, there in (("wheels", wheels), ("extension", extensions), ("plugin for Neovim", held)):
        if not there:
            sys.exit(f"nothing is built for version {version} of the {what}: make release builds it")
    if others := [name for name in held if not name.startswith(f"lacuna_code-{version}-")]:
        sys.exit(f"the plugin for Neovim holds {others[0]}, and the version is {version}")
    release = root / "dist/release"
    shutil.rmtree(release, ignore_errors=True)
    release.mkdir(parents=True)
    for wheel in wheels:
        shutil.copy(wheel, release)
    for extension in extensions:
        platform = extension.stem.removeprefix("lacuna-")
        shutil.copy(extension, release / f"lacuna-{version}-{platform}.vsix")
    with tarfile.open(release / f"lacuna.nvim-{version}.tar.gz", "w:gz") as packed:
        packed.add(plugin, "lacuna.nvim")
    (release / NOTES).write_text(notes((root / "CHANGELOG.md").read_text(encoding="utf-8"), version), encoding="utf-8")
    sums = "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(release.iterdir())
    )
    (release / SUMS).write_text(sums, encoding="utf-8")
    print(f"version {version} is in {release}:\n{sums}", end="")


def _version(root: Path) -> str:
    """The version that all parts name."""
    own: str = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    named = {"pyproject.toml": own}
    for name in ("package.json", "package-lock.json"):
        named[name] = json.loads((root / "editor-clients/vscode" / name).read_text(encoding="utf-8"))["version"]
    if len(set(named.values())) > 1:
        sys.exit(f"the versions differ: {', '.join(f'{place} has {version}' for place, version in named.items())}")
    return own


def notes(changelog: str, version: str) -> str:
    """Return the part of a changelog about a version; where it has none, that about what is not released yet."""
    parts = re.split(r"^## \[([^\]]+)\].*\n", changelog, flags=re.MULTILINE)
    told = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = told.get(version) or told.get("Unreleased", "")
    return f"# Lacuna {version}\n\n{found.strip()}\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
