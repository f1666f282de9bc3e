"""Reads a workspace's files without leaving it: no links, up to a limit; finds its root, and what was generated."""

import os
import re
import stat
from itertools import islice
from pathlib import Path

_NAME = re.compile(
    r".*_pb2(_grpc)?\.pyi?|parsetab\.py|lextab\.py|_version\.py|versioneer\.py|.*\.pb(\.gw|\.cc|-c)?\.(go|h|c|cc)"
    r"|.*_generated\.\w+|zz_generated.*|.*\.generated\.\w+|.*[.-]min\.\w+"
    r"|.*\.(bundle|umd|iife|production|prod|development|global)(\.min)?\.[cm]?js"
)
_HEAD = re.compile(
    r"(?i)\b(auto(matically)?[- ]?generated|(is|was|been|file|code) (machine[- ])?generated (by|from|with)"
    r"|generated (by|from)\b|do not (edit|modify)\b|don't edit\b|machine generated)|@generated\b"
)
_HEAD_CHARACTERS = 1000
_MAX_LINE = 1000
_MAX_MEAN_LINE = 100


def generated_name(name: str) -> bool:
    """Whether a file's name shows that it was generated."""
    return _NAME.fullmatch(name) is not None


def generated_head(text: str) -> bool:
    """Whether the first characters of a file announce that it was generated."""
    return _HEAD.search(text[:_HEAD_CHARACTERS]) is not None


def minified(text: str) -> bool:
    """Whether the lines are too long to have been written by hand."""
    lines = text.splitlines() or [""]
    return max(map(len, lines)) > _MAX_LINE or len(text) / len(lines) > _MAX_MEAN_LINE


_PROJECT_FILES = ("pyproject.toml", "package.json", "lacuna.toml")


def find_root(file: Path) -> Path | None:
    """The repository of a file, else the nearest folder above with a project file; None where there is neither."""
    folder = Path(os.path.realpath(file)).parent
    found = (f for f in (folder, *folder.parents) if any(os.path.isfile(f / name) for name in _PROJECT_FILES))
    return find_repository(folder) or next(found, None)


def find_repository(folder: Path) -> Path | None:
    """The repository that a folder is or lies in; None where there is none."""
    return next((above for above in (folder, *folder.parents) if os.path.exists(above / ".git")), None)


def absolute(path: Path | str) -> Path:
    """A path from the root of the file system, without ``..``."""
    return Path(os.path.abspath(path))


# What changes with a file: its size in bytes and modification time in nanoseconds; for a path also which file it is.
Mark = tuple[int, ...]


def mark(file: Path) -> Mark:
    """The mark of what is at a path; zeros where nothing is."""
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns, status.st_ino


def listed(folder: Path, most: int | None = None) -> list[os.DirEntry[str]]:
    """The entries of a folder by name, of many the first ``most`` in any order; none where it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(islice(entries, most), key=lambda entry: entry.name)
    except OSError:
        return []


_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
# Non-blocking, so that opening a pipe without a writer returns at once; it is refused afterwards.
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def read_within(root: Path, file: Path, limit: int) -> bytes | None:
    """The bytes of a file below ``root``, which may itself be a link; None where it may not be read.

    That is ``root`` itself, a file outside of it, one that is not regular or has more than ``limit`` bytes, a link,
    and a file in a folder that is a link.
    """
    root, file = absolute(root), file.absolute()
    if root not in file.parents or ".." in file.parts:
        return None
    try:
        descriptor = _opened(root, file.relative_to(root).parts)
        try:
            return _read(descriptor, limit)
        finally:
            os.close(descriptor)
    except OSError:
        return None


def _opened(root: Path, parts: tuple[str, ...]) -> int:
    """Open the file reached through ``parts`` and return its descriptor; raises OSError."""
    if os.open not in os.supports_dir_fd:  # Windows: not atomic, the path may change between check and opening
        if any(root.joinpath(*parts[:count]).is_symlink() for count in range(1, len(parts) + 1)):
            raise OSError("a link")
        return os.open(root.joinpath(*parts), _FILE)
    folder = os.open(root, os.O_RDONLY | _FOLDER)
    try:
        for name in parts[:-1]:
            inner = os.open(name, os.O_RDONLY | _FOLDER | _NO_LINK, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FILE | _NO_LINK, dir_fd=folder)
    finally:
        os.close(folder)


def _read(descriptor: int, limit: int) -> bytes | None:
    """All bytes of a regular file; None where it is not regular, or too long."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
        return None
    data = b""
    while len(data) <= limit and (piece := os.read(descriptor, limit + 1 - len(data))):
        data += piece
    return data if len(data) <= limit else None
