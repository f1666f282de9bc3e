"""Which folder is the workspace of a file that was named alone."""

from pathlib import Path

_PROJECT_FILES = ("pyproject.toml", "package.json")


def find_root(file: Path) -> Path | None:
    """The repository that a file lies in, else the nearest folder above with a project file; None where neither is."""
    folders = file.resolve().parents
    repository = next((folder for folder in folders if (folder / ".git").exists()), None)
    return repository or next((f for f in folders if any((f / name).is_file() for name in _PROJECT_FILES)), None)
