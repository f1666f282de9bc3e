"""One service per user: the file by which clients find it, and the lock that says whether it still runs."""

import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import msgspec
import platformdirs

from lacuna_model import atomic
from lacuna_model.errors import LacunaError

FILE_NAME = "service.json"
LOCK_NAME = "service.lock"
# A client that looks whether the lock is held holds it itself for a moment.
PATIENCE_S = 0.3


class LifecycleError(LacunaError):
    """The service cannot be started or found, with one line that says why."""


class Running(msgspec.Struct, frozen=True):
    """A running service: its process, where it listens (``http://127.0.0.1:8377``) and the token it asks for."""

    pid: int
    url: str
    token: str


class AlreadyRunningError(LifecycleError):
    """This user has a service already; ``running`` is None while it has not said yet where it listens."""

    def __init__(self, running: Running | None) -> None:
        where = f"at {running.url} (process {running.pid})" if running else "and is just starting"
        super().__init__(f"a service of this user is running {where}")
        self.running = running


@contextmanager
def only_service() -> Iterator[Running | None]:
    """Be this user's only service until the block ends, however it ends.

    The operating system gives the lock up with its process, so that a file which a killed service left behind does
    no harm; the block is given what it says. Raises AlreadyRunningError, and LifecycleError where the folder cannot be
    used.
    """
    lock = _lock()
    try:
        lock.acquire(timeout=PATIENCE_S)
    except filelock.Timeout:
        raise AlreadyRunningError(_read()) from None
    except OSError as error:
        raise _unusable(error) from None
    try:
        left_behind = _read()
        _file().unlink(missing_ok=True)
        yield left_behind
    finally:
        _file().unlink(missing_ok=True)
        lock.release()


def announce(running: Running) -> None:
    """Write the file, for this user's eyes only; the caller holds the lock. Raises LifecycleError."""
    file = _file()
    try:
        atomic.remove_parts(file)
        with atomic.replacing(file) as stream:
            os.fchmod(stream.fileno(), stat.S_IRUSR | stat.S_IWUSR)
            stream.write(msgspec.json.encode(running))
    except OSError as error:
        raise _unusable(error) from None


def find() -> Running | None:
    """This user's running service, None where there is none, be there a file or not."""
    try:
        lock = _lock()
        lock.acquire()
    except filelock.Timeout:
        return _read()
    except (LifecycleError, OSError):
        return None
    lock.release()
    return None


def _lock() -> filelock.FileLock:
    return filelock.FileLock(_folder() / LOCK_NAME, timeout=0, mode=stat.S_IRUSR | stat.S_IWUSR)


def _file() -> Path:
    return _folder() / FILE_NAME


def _folder() -> Path:
    """The folder for both files, which nobody else can write to; raises LifecycleError where there is no such."""
    with warnings.catch_warnings():
        # Without XDG_RUNTIME_DIR, as in a container, it is a folder in /tmp, of which platformdirs makes sure as well.
        warnings.simplefilter("ignore", platformdirs.RuntimeDirWarning)
        try:
            return Path(platformdirs.user_runtime_dir("lacuna", ensure_exists=True))
        except OSError as error:
            raise _unusable(error) from None


def _read() -> Running | None:
    try:
        return msgspec.json.decode(_file().read_bytes(), type=Running)
    except (OSError, msgspec.MsgspecError):
        return None


def _unusable(error: OSError) -> LifecycleError:
    return LifecycleError(f"cannot use {error.filename or 'the runtime folder'}: {error.strerror or error}")
