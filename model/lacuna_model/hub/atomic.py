"""The folders of the user and the files in them: private, there complete or not at all, checked, and not too many."""

import contextlib
import errno
import glob
import hashlib
import logging
import math
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec
import platformdirs

from lacuna_model.core.errors import RequestError

# What a person did with suggestions, in the state folder.
ANSWERS = "answers.json"

Kind = Literal["cache", "config", "state", "log"]
_FOLDERS = {
    "cache": platformdirs.user_cache_path,
    "config": platformdirs.user_config_path,
    "state": platformdirs.user_state_path,
    "log": platformdirs.user_log_path,
}
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
PART = ".part"
WAITS, WAIT_S = 25, 0.02
PRIVATE = stat.S_IRUSR | stat.S_IWUSR
# Whatever the umask: a file that others can write to is not trusted when it is read.
READABLE = PRIVATE | stat.S_IRGRP | stat.S_IROTH
_OWN = re.compile(r"[0-9a-f-]+")
# File systems take names of 255 bytes; a longer name than this is replaced by its digest in the name of a part.
_LONGEST = 200
SUFFIX = ".checked.json"
# Files of one kind that are kept by default, enough for two checkouts used in turn.
MAX_KEPT = 2
log = logging.getLogger(__name__)


def user_folder(kind: Kind) -> Path:
    """Lacuna's folder of a kind, which may not exist yet. Raises RequestError where the user has no home folder."""
    try:
        return _FOLDERS[kind]("lacuna", appauthor=False)
    except RuntimeError:  # a user id without a name, as in a container, and without HOME
        raise RequestError("there is no home folder: set HOME to a folder that Lacuna may write to") from None


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
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot, such as a shared folder
                raise
        finally:
            os.close(descriptor)


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
    with contextlib.suppress(OSError), replacing(note) as stream:
        stream.write(msgspec.json.encode(Checked(digest, status.st_size, status.st_mtime_ns)))
    return digest


def forget(file: Path) -> None:
    """Remove the note beside a file, so that the next check reads the file again."""
    _note(file).unlink(missing_ok=True)


def _note(file: Path) -> Path:
    return file.with_name(file.name + SUFFIX)


def keep(
    file: Path,
    alike: str,
    write: Callable[[BinaryIO], object],
    *,
    private: bool = False,
    most: int = MAX_KEPT,
    most_bytes: int = 0,
    max_age_s: float = math.inf,
) -> None:
    """Make ``file`` with ``write``, as :func:`replacing` does, after creating its folder.

    Of the files in its folder whose names match the pattern ``alike``, the ``most`` latest are kept, and those before
    them that fit into ``most_bytes`` with all that are later; none that was last used more than ``max_age_s`` ago.
    """
    try:
        make_private(file.parent)
        with replacing(file, private=private) as stream:
            write(stream)
    except OSError as error:
        _say(file.parent, error.strerror or str(error))
        return
    with contextlib.suppress(OSError):  # another process may remove files too
        written = sorted(file.parent.glob(alike), key=lambda one: one.stat().st_mtime_ns, reverse=True)
        sizes = accumulate(one.stat().st_size for one in written)
        for number, (older, size) in enumerate(zip(written, sizes, strict=True)):
            is_one_too_many = number >= most and size > most_bytes
            if is_one_too_many or time.time() - older.stat().st_mtime > max_age_s:
                older.unlink(missing_ok=True)


@contextmanager
def kept(file: Path) -> Iterator[BinaryIO]:
    """The content of an optional file, which counts as used then; raises OSError, also where it is not trusted."""
    if not is_trusted(file):
        raise PermissionError(errno.EPERM, "others can write to it", str(file))
    with file.open("rb") as stream:
        os.utime(file)
        yield stream


@cache
def _say(folder: Path, reason: str) -> None:
    log.warning(
        "%s cannot be written to (%s): what it would keep is made anew at every start; "
        "LACUNA_CACHE names another folder",
        *(folder, reason),
    )
