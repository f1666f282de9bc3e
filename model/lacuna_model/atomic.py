"""Files that appear under their name complete or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PART = ".part"


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A stream whose content becomes ``target`` in one step, on disk, when the block ends without an exception.

    The temporary file lies in the same folder under a name of its own, so that two writers cannot meet; it is removed
    when anything fails. Raises OSError.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}{PART}")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def remove_parts(target: Path) -> None:
    """Removes what killed writers of ``target`` left behind; call it only where no other writer can be at work."""
    for part in target.parent.glob(f".{target.name}.*{PART}"):
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
