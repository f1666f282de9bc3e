"""Several files replaced together: all of them or none, even when the process is killed between two of them.

Before the first file changes, a journal in the user's state folder holds every file's old bytes. While it is there the
change is not done: whoever takes the lock next puts back what had been replaced (:func:`recover`). The change is done
when the journal is removed. So a command that was killed never takes effect later.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock
import msgspec
import platformdirs

from lacuna_model import atomic
from lacuna_model.errors import RequestError
from lacuna_server import files
from lacuna_server.refactor.plan import sha256

SUFFIX = ".journal"
STATE_VARIABLE = "LACUNA_STATE"
LOCK_SECONDS = 30


class Change(msgspec.Struct, frozen=True):
    """A file's bytes before and after; ``part`` is where the new ones wait, beside it."""

    target: str
    part: str
    before: bytes
    after_sha256: str


def state_folder() -> Path:
    """Where journals are: ``LACUNA_STATE``, else the user's state folder."""
    named = os.environ.get(STATE_VARIABLE)
    return (Path(named) if named else platformdirs.user_state_path("lacuna", appauthor=False)) / "refactors"


def replace_all(contents: Sequence[tuple[Path, bytes, bytes]]) -> None:
    """Replaces files (path, bytes expected, new bytes) together; raises RequestError, and then nothing has changed.

    Files keep their mode, links their target. A file that does not hold the bytes expected is refused.
    """
    if not contents:
        return
    with _locked() as folder:
        _put_back_all(folder)
        journal = folder / f"{secrets.token_hex(8)}{SUFFIX}"
        try:
            changes = [_change(path, before, after) for path, before, after in contents]
            with atomic.replacing(journal) as stream:
                stream.write(msgspec.msgpack.encode(changes))
            for change, (path, before, after) in zip(changes, contents, strict=True):
                _prepare(change, path, before, after)
            for change in changes:
                os.replace(change.part, change.target)
            for changed in {Path(change.target).parent for change in changes}:
                atomic.sync_folder(changed)
            journal.unlink()
        except BaseException as error:
            _put_back(journal)
            if isinstance(error, OSError):
                raise RequestError(f"cannot write {error.filename}: {error.strerror}; nothing was changed") from error
            raise
        atomic.sync_folder(folder)


def recover() -> list[str]:
    """Puts back what refactors that were killed had replaced; a line about each file that changed hands."""
    if not any(state_folder().glob(f"*{SUFFIX}*")):  # nothing, or only the lock, as nearly always
        return []
    with _locked() as folder:
        return _put_back_all(folder)


def _change(path: Path, before: bytes, after: bytes) -> Change:
    target = path.resolve(strict=True)
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}{atomic.PART}")
    return Change(str(target), str(part), before, sha256(after))


def _prepare(change: Change, path: Path, before: bytes, after: bytes) -> None:
    """Writes the new bytes beside their target, on disk, and looks whether the target is still what it was."""
    status = os.stat(change.target)
    with open(change.part, "xb") as stream:
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
    """Undoes what a journal has begun, and removes it; a file that somebody else has changed meanwhile stays."""
    if not journal.exists():
        return []
    lines = []
    changes = msgspec.msgpack.decode(journal.read_bytes(), type=list[Change])
    for change in changes:
        target = Path(change.target)
        atomic.remove_parts(target)
        current = target.read_bytes() if target.exists() else None
        if current is not None and sha256(current) == change.after_sha256:
            status = target.stat()
            with atomic.replacing(target) as stream:
                stream.write(change.before)
                files.keep_owner_and_mode(stream.fileno(), status)
            lines.append(f"{target}: put back, because the refactor that changed it was cut off")
        elif current != change.before:
            lines.append(f"{target}: left as it is; it has changed since a refactor was cut off")
    journal.unlink()
    return lines


@contextlib.contextmanager
def _locked() -> Iterator[Path]:
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / "lock", timeout=LOCK_SECONDS)
    try:
        with lock:
            yield folder
    except filelock.Timeout as error:
        raise RequestError("another refactor is being written; try again") from error
