"""Checks that only this user can write to a file: code and weights are loaded from such folders only."""

import os
import stat
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents for this user alone; raises OSError.

    If the folder exists and belongs to this user, write access of others is removed.
    """
    for one in reversed([folder, *folder.parents]):
        if not one.exists():
            one.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if hasattr(os, "geteuid") and status.st_uid == os.geteuid() and status.st_mode & _OTHERS:
        folder.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def is_trusted(file: Path) -> bool:
    """Whether a file and its folder belong to this user or the system, and no other user can write to them.

    Raises OSError where one of them does not exist.
    """
    return all(_is_own(path.stat()) for path in (file, file.parent))


def _is_own(status: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & _OTHERS
