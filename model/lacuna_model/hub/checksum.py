"""SHA-256 of large files, computed once and remembered in a small file beside them."""

import contextlib
import hashlib
from pathlib import Path

import msgspec

from lacuna_model.hub.ownership import is_trusted

SUFFIX = ".checked.json"


class Checked(msgspec.Struct, frozen=True):
    """What was computed, and the size (bytes) and modification time (ns) it holds for."""

    sha256: str
    size: int
    mtime_ns: int


def sha256(file: Path) -> str:
    """The file's SHA-256 in hex; raises OSError where it cannot be read."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remembered(file: Path) -> str:
    """The file's SHA-256, from the note beside it while size and modification time are those of the note."""
    status = file.stat()
    note = _note(file)
    try:
        checked = msgspec.json.decode(note.read_bytes() if is_trusted(note) else b"", type=Checked)
    except (OSError, msgspec.MsgspecError):
        checked = Checked("", -1, -1)
    if (checked.size, checked.mtime_ns) == (status.st_size, status.st_mtime_ns):
        return checked.sha256
    digest = sha256(file)
    # A cache that cannot be written to costs the same check next time, nothing else.
    with contextlib.suppress(OSError):
        note.write_bytes(msgspec.json.encode(Checked(digest, status.st_size, status.st_mtime_ns)))
    return digest


def forget(file: Path) -> None:
    """Removes the note beside a file, so that the next check reads the file again."""
    _note(file).unlink(missing_ok=True)


def _note(file: Path) -> Path:
    return file.with_name(file.name + SUFFIX)
