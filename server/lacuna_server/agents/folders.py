"""The folders that agents may work in; every path that an agent names has to lie inside one of them."""

import os
from collections.abc import Sequence
from pathlib import Path

from lacuna_model.core.errors import RequestError
from lacuna_model.files.scanning import WorkspaceSettings, admits, quotable
from lacuna_server import files
from lacuna_server.files import FileText

# A tool takes any file that a person may have written.
ANY_SIZE = WorkspaceSettings(max_file_bytes=2_000_000, max_files=10**9, max_total_bytes=10**15)

# Linux's PATH_MAX and NAME_MAX; a longer name is a text that was passed by mistake.
MAX_PATH, MAX_NAME = 4096, 255


def excerpt(name: str) -> str:
    """The beginning of a name, short enough for a message of one line."""
    return name if len(name) <= 60 else f"{name[:60]}..."


class Folders:
    """The folders that the server was started with. Relative paths are those of the first folder."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.roots = [folder.resolve(strict=True) for folder in folders]
        for root in self.roots:
            if not root.is_dir():
                raise RequestError(f"{root} is not a folder")

    def file(self, name: str) -> Path:
        """The file with that name; raises RequestError where it lies outside, is ignored, or is no file."""
        path, root = self._inside(name)
        if not path.is_file():
            raise RequestError(f"{name} is not a file")
        self._check(name, root, path)
        return path

    def read(self, name: str) -> FileText:
        """The content of such a file; raises RequestError also where it holds a credential or is generated."""
        document = files.read(self.file(name))
        if not quotable(document.text):
            raise RequestError(f"{name} is generated or holds a credential; it is neither shown nor written")
        return document

    def places(self, names: Sequence[str]) -> list[str]:
        """Files, folders and globs with those names, all folders without any.

        Raises RequestError for one that lies outside or is ignored. What a glob finds is not checked.
        """
        return [self._place(name) for name in names] or [str(root) for root in self.roots]

    def _place(self, name: str) -> str:
        path, root = self._inside(name)
        if path.is_dir():
            self._check(name, root, path / "any.py")
        elif path.exists():
            self._check(name, root, path)
        return str(path)

    def _check(self, name: str, root: Path, path: Path) -> None:
        if not admits(root, path, ANY_SIZE):
            raise RequestError(f"{name} is ignored by git or may hold a secret; it is neither read nor written")

    def _inside(self, name: str) -> tuple[Path, Path]:
        """The path without links, and the folder that it lies in."""
        if not _can_be_path(name):
            raise RequestError(f"{excerpt(name)!r} is no path; name a file or folder, do not pass its content")
        path = (self.roots[0] / name).resolve()
        root = next((root for root in self.roots if path.is_relative_to(root)), None)
        if root is None:
            allowed = ", ".join(map(str, self.roots))
            raise RequestError(f"{name} lies outside the folders of this server: {allowed}")
        return path, root


def _can_be_path(name: str) -> bool:
    """Whether a system can have a file or folder, or files of a glob, with that name."""
    try:
        parts = os.fsencode(name).split(b"/")
    except UnicodeEncodeError:  # half of a character
        return False
    short = len(name) <= MAX_PATH and max(map(len, parts)) <= MAX_NAME
    return short and "\0" not in name and len(name.splitlines()) <= 1
