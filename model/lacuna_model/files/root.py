"""Finds the workspace of a single file. What may not be looked at counts as missing."""

import os
from pathlib import Path

_PROJECT_FILES = ("pyproject.toml", "package.json", "lacuna.toml")


def find_root(file: Path) -> Path | None:
    """The repository of a file, else the nearest folder above with a project file; None where there is neither."""
    folder = Path(os.path.realpath(file)).parent
    found = (f for f in (folder, *folder.parents) if any(os.path.isfile(f / name) for name in _PROJECT_FILES))
    return find_repository(folder) or next(found, None)


def find_repository(folder: Path) -> Path | None:
    """The repository that a folder is or lies in; None where there is none."""
    return next((above for above in (folder, *folder.parents) if os.path.exists(above / ".git")), None)
