"""SHA-256 of large files, computed once and stored in a small file beside them."""

import contextlib
import hashlib
from pathlib import Path

import msgspec

from lacuna_model.hub import atomic
from lacuna_model.hub.ownership import is_trusted

SUFFIX = ".checked.json"


class Checked(msgspec.Struct, frozen=True):
    """A stored checksum, and the size (bytes) and modification time (ns) of the file that it is valid for."""

    sha256: str
    size: int
    mtime_ns: int


def sha256(file: Path) -> str:
    """The file's SHA-256 in hex; raises OSError where it cannot be read."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remembered(file: Path) -> str:
    """The file's SHA-256, from the stored one while the file's size and modification time are unchanged."""
    status = file.stat()
    note = _note(file)
    try:
        checked = msgspec.json.decode(note.read_bytes() if is_trusted(note) else b"", type=Checked)
    except (OSError, msgspec.MsgspecError):
        checked = Checked("", -1, -1)
    if (checked.size, checked.mtime_ns) == (status.st_size, status.st_mtime_ns):
        return checked.sha256
    digest = sha256(file)
    # If the note cannot be written, the next call computes the checksum again.
    with contextlib.suppress(OSError), atomic.replacing(note) as stream:
        stream.write(msgspec.json.encode(Checked(digest, status.st_size, status.st_mtime_ns)))
    return digest


def forget(file: Path) -> None:
    """Remove the note beside a file, so that the next check reads the file again."""
    _note(file).unlink(missing_ok=True)


def _note(file: Path) -> Path:
    return file.with_name(file.name + SUFFIX)
