"""Lists the files that match a glob, without following links that lead out of the folder."""

import glob
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

ANY_DEPTH = "**"


class Glob:
    """A glob such as ``src/**/*.py``. An existing name with brackets in it is taken literally.

    As in a shell, ``**`` follows no links and ``*`` matches no hidden names. A link that leads out of the folder in
    which the glob begins (for a relative glob: and out of the current folder) is not followed; ``outside`` lists it.
    """

    def __init__(self, pattern: str) -> None:
        path = Path(pattern)
        parts = list(path.parts[1:] if path.anchor else path.parts)
        folder = Path(path.anchor)
        while parts and (not glob.has_magic(parts[0]) or os.path.lexists(folder / parts[0])):
            folder /= parts.pop(0)
        self._folder = folder
        self._parts = [
            part for index, part in enumerate(parts) if part != ANY_DEPTH or parts[index - 1 : index] != [part]
        ]
        self._homes = {folder.resolve()} if path.anchor else {folder.resolve(), Path.cwd().resolve()}
        self.outside: list[Path] = []
        self._visited: set[tuple[Path, int]] = set()

    def files(self) -> Iterator[Path]:
        """Yields the regular files, folder by folder in the order of their names, each once."""
        if self._parts:
            self._visited.clear()
            yield from self._below(self._folder, self._parts)

    def _below(self, folder: Path, parts: Sequence[str]) -> Iterator[Path]:
        # Several `**` lead to one folder in many ways.
        if (folder, len(parts)) in self._visited:
            return
        self._visited.add((folder, len(parts)))
        head, rest = parts[0], parts[1:]
        if head == ANY_DEPTH and rest:
            yield from self._below(folder, rest)
        for name in _listed(folder):
            path = folder / name
            if not _names(head, name):
                continue
            if path.is_dir():
                if (head == ANY_DEPTH or rest) and self._is_inside(path):
                    if head != ANY_DEPTH:
                        yield from self._below(path, rest)
                    elif not path.is_symlink():
                        yield from self._below(path, parts)
            elif not rest and path.is_file() and self._is_inside(path):
                yield path

    def _is_inside(self, path: Path) -> bool:
        target = path.resolve()
        if path.is_symlink() and not any(target.is_relative_to(home) for home in self._homes):
            self.outside.append(path)
            return False
        return True


def _names(pattern: str, name: str) -> bool:
    if name.startswith(".") and not pattern.startswith("."):
        return False
    return pattern == ANY_DEPTH or fnmatch(name, pattern)


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
