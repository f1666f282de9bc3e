"""Replaces several files together: all or none, even if the process is killed halfway.

Before the first file changes, a journal in the user's state folder stores the old bytes of every file. Removing the
journal completes the change. While a journal exists, the next process that takes the lock restores the replaced files
(:func:`recover`). So a command that was killed never takes effect later.

Journals and parts contain the text of files, so only this user can read them. A journal that cannot be read is renamed
and reported. A journal with files that cannot be restored stays for the next attempt.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock
import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.hub import atomic
from lacuna_model.hub.atomic import user_folder
from lacuna_server import files

SUFFIX = ".journal"
SET_ASIDE = ".unreadable"
STATE_VARIABLE = "LACUNA_STATE"
LOCK_SECONDS = 30


def sha256(data: bytes) -> str:
    """Returns the digest that identifies the bytes of a file."""
    return hashlib.sha256(data).hexdigest()


class FileChange(msgspec.Struct, frozen=True):
    """The change of one file: its old bytes, and the digest of the new bytes, which wait in the file ``part``."""

    target: str
    part: str
    before: bytes
    after_sha256: str


def state_folder() -> Path:
    """Returns the folder of journals, in ``LACUNA_STATE`` or in the user's state folder."""
    named = os.environ.get(STATE_VARIABLE)
    return (Path(named) if named else user_folder("state")) / "refactors"


def replace_all(contents: Sequence[tuple[Path, bytes, bytes]]) -> None:
    """Replaces files together, given as (path, expected bytes, new bytes).

    Files keep their mode, and links keep their target. Raises RequestError where a file does not have the expected
    bytes or cannot be written; then nothing has changed, or the message tells what could not be restored yet.
    """
    if not contents:
        return
    with _locked() as folder:
        _put_back_all(folder)
        journal = folder / f"{secrets.token_hex(8)}{SUFFIX}"
        try:
            targets = [(path.resolve(strict=True), before, after) for path, before, after in contents]
            changes = [
                FileChange(str(target), str(atomic.part_of(target)), before, sha256(after))
                for target, before, after in targets
            ]
            with atomic.replacing(journal, private=True) as stream:
                stream.write(msgspec.msgpack.encode(changes))
            for change, (path, before, after) in zip(changes, contents, strict=True):
                _prepare(change, path, before, after)
            for change in changes:
                os.replace(change.part, change.target)
            for changed in {Path(change.target).parent for change in changes}:
                atomic.sync_folder(changed)
            journal.unlink()
        except BaseException as error:
            lines = _put_back(journal)
            if isinstance(error, OSError):
                outcome = "; ".join(lines) if journal.exists() else "nothing was changed"
                where = error.filename or folder  # a write to an open file does not say which
                raise RequestError(f"cannot write {where}: {error.strerror or error}; {outcome}") from error
            raise
        atomic.sync_folder(folder)


def recover() -> list[str]:
    """Restores the files that killed refactors had replaced. Returns a line about each file that needed a decision."""
    if not any(state_folder().glob(f"*{SUFFIX}*")):  # usually there is nothing, or only the lock
        return []
    with _locked() as folder:
        return _put_back_all(folder)


def _prepare(change: FileChange, path: Path, before: bytes, after: bytes) -> None:
    """Writes the new bytes to a part beside their target, and checks that the target still has its old bytes."""
    status = os.stat(change.target)
    with atomic.create(Path(change.part), private=True) as stream:
        stream.write(after)
        files.keep_owner_and_mode(stream.fileno(), status)
        stream.flush()
        os.fsync(stream.fileno())
    if Path(change.target).read_bytes() != before:
        raise RequestError(f"{path} has changed since it was read; nothing was written")


def _put_back_all(folder: Path) -> list[str]:
    for part in folder.glob(f".*{atomic.PART}"):
        part.unlink(missing_ok=True)
    return [line for journal in sorted(folder.glob(f"*{SUFFIX}")) for line in _put_back(journal)]


def _put_back(journal: Path) -> list[str]:
    """Undoes the changes of a journal, and removes it. Files that have changed since stay as they are."""
    try:
        with journal.open("rb") as stream:
            _refuse_others(journal, os.fstat(stream.fileno()))
            changes = msgspec.msgpack.decode(stream.read(), type=list[FileChange])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        aside = journal.with_suffix(SET_ASIDE)
        os.replace(journal, aside)
        said = error.strerror if isinstance(error, OSError) else "no journal of a refactor"
        return [f"{journal} cannot be read ({said}) and is now {aside.name}; the files that it names stay as they are"]
    lines, failed = [], False
    for change in changes:
        try:
            lines += _put_back_one(change)
        except OSError as error:
            failed = True
            lines.append(f"{change.target}: a refactor was cut off, and it cannot be put back yet: {error.strerror}")
    if not failed:
        journal.unlink()
    return lines


def _put_back_one(change: FileChange) -> list[str]:
    """Undoes one change. Returns a line where the file was restored or has other bytes. Raises OSError."""
    target = Path(change.target)
    atomic.remove_parts(target)
    current = target.read_bytes() if target.exists() else None
    if current is not None and sha256(current) == change.after_sha256:
        status = target.stat()
        with atomic.replacing(target, private=True) as stream:
            stream.write(change.before)
            files.keep_owner_and_mode(stream.fileno(), status)
        return [f"{target}: put back, because the refactor that changed it was cut off"]
    if current != change.before:
        return [f"{target}: left as it is; it has changed since a refactor was cut off"]
    return []


@contextlib.contextmanager
def _locked() -> Iterator[Path]:
    folder = state_folder()
    try:
        folder.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
        _refuse_others(folder, folder.stat())
        if stat.S_IMODE(folder.stat().st_mode) != stat.S_IRWXU:
            folder.chmod(stat.S_IRWXU)
    except OSError as error:
        raise RequestError(f"cannot use {folder}: {error.strerror}; {STATE_VARIABLE} names another folder") from error
    lock = filelock.FileLock(folder / "lock", timeout=LOCK_SECONDS, mode=atomic.PRIVATE)
    try:
        with lock:
            yield folder
    except filelock.Timeout as error:
        raise RequestError("another refactor is being written; try again") from error


def _refuse_others(path: Path, status: os.stat_result) -> None:
    """Raises PermissionError where another user owns a file: their journal could make this process write anything."""
    if os.name == "posix" and status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user", str(path))
