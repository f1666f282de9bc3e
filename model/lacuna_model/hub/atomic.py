"""Files that appear under their name complete or not at all."""

import glob
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PART = ".part"
PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_OWN = re.compile(r"[0-9a-f-]+")


@contextmanager
def replacing(target: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """A stream whose content becomes ``target`` in one step, on disk, when the block ends without an exception.

    A ``private`` one is at no moment readable by anybody else.
    The temporary file lies in the same folder under a name of its own, so that two writers cannot meet; it is removed
    when anything fails. Raises OSError.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}{PART}")
    try:
        with create(temporary, private=private) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def create(path: Path, *, private: bool) -> BinaryIO:
    """Opens a file that is not there yet, which from the first moment nobody else can read if it is ``private``."""
    if not private:
        return path.open("xb")
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, PRIVATE))


def remove_parts(target: Path) -> None:
    """Removes what killed writers of ``target`` left behind; call it only where no other writer can be at work."""
    head = f".{target.name}."
    for part in target.parent.glob(f"{glob.escape(head)}*{PART}"):
        if _OWN.fullmatch(part.name[len(head) : -len(PART)]):  # not that of a file with a longer name
            part.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Brings a folder's names to disk: without it a new one can be lost in a power cut, or an old one come back."""
    # Windows has no way to open a folder.
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
