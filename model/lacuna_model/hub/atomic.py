"""Writes files that appear under their name complete or not at all."""

import glob
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PART = ".part"
WAITS, WAIT_S = 25, 0.02
PRIVATE = stat.S_IRUSR | stat.S_IWUSR
# Whatever the umask: a file that others can write to is not trusted when it is read.
READABLE = PRIVATE | stat.S_IRGRP | stat.S_IROTH
_OWN = re.compile(r"[0-9a-f-]+")
# File systems take names of 255 bytes; a longer name than this is replaced by its digest in the name of a part.
_LONGEST = 200


@contextmanager
def replacing(target: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """A stream whose content becomes ``target`` in one step, on disk, when the block ends without an exception.

    A ``private`` file is never readable by other users. The temporary file is in the same folder under a unique name,
    so that two writers do not collide; it is removed when anything fails. Raises OSError.
    """
    temporary = part_of(target)
    try:
        with create(temporary, private=private) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def _replace(temporary: Path, target: Path) -> None:
    """Give a file its name; on Windows, that has to wait for whoever has the target open at the moment."""
    for _ in range(WAITS if os.name == "nt" else 0):
        try:
            return os.replace(temporary, target)
        except PermissionError:
            time.sleep(WAIT_S)
    os.replace(temporary, target)


def part_of(target: Path) -> Path:
    """Return a new name for a temporary file of ``target``, beside it."""
    return target.with_name(f"{_head(target)}{os.getpid()}-{secrets.token_hex(8)}{PART}")


def _head(target: Path) -> str:
    name = os.fsencode(target.name)
    return f".{target.name if len(name) <= _LONGEST else hashlib.sha256(name).hexdigest()}."


def create(path: Path, *, private: bool) -> BinaryIO:
    """Create and open a file that must not exist, and that only this user can write to from the start.

    Only this user can read a ``private`` one.
    """
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, PRIVATE if private else READABLE))


def remove_parts(target: Path) -> None:
    """Remove the temporary files of killed writers of ``target``; call it only while no other writer can be running."""
    for part in parts(target):
        part.unlink(missing_ok=True)


def parts(target: Path) -> Iterator[Path]:
    """Yield the temporary files of writers of ``target``."""
    head = _head(target)
    for part in target.parent.glob(f"{glob.escape(head)}*{PART}"):
        if _OWN.fullmatch(part.name[len(head) : -len(PART)]):  # not the part of a file with a longer name
            yield part


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that a power cut does not lose a new name or restore an old one."""
    # Windows has no way to open a folder.
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
