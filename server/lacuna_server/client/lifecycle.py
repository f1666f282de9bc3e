"""One service per user: the file by which clients find it, and the locks that say whether it still runs.

``service.lock`` is held by the one service. ``service.json`` is locked itself while its writer lives: a file that a
killed service left behind is locked by nobody, whoever holds ``service.lock`` by then.
"""

import errno
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import filelock
import msgspec
import platformdirs

from lacuna_model.core.errors import LacunaError
from lacuna_model.hub import atomic

FILE_NAME = "service.json"
LOCK_NAME = "service.lock"
# A service that ends takes its file away a moment before it gives the lock up.
PATIENCE_S = 0.3
PRIVATE_FOLDER = stat.S_IRWXU
PRIVATE_FILE = stat.S_IRUSR | stat.S_IWUSR
# The file, open and so locked as long as this process is the service.
_announced: list[BinaryIO] = []


class LifecycleError(LacunaError):
    """The service cannot be started or found, with one line that says why."""


class Running(msgspec.Struct, frozen=True):
    """A running service: its process, where it listens (``http://127.0.0.1:8377``) and the token of its own clients."""

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
        raise AlreadyRunningError(find()) from None
    except OSError as error:
        raise _unusable(error) from None
    try:
        left_behind = _left_behind()
        _file().unlink(missing_ok=True)
        yield left_behind
    finally:
        _file().unlink(missing_ok=True)
        while _announced:
            _announced.pop().close()
        lock.release()


def announce(running: Running) -> None:
    """Write the file, for this user's eyes only; the caller is the only service. Raises LifecycleError."""
    file = _file()
    try:
        atomic.remove_parts(file)
        with atomic.replacing(file) as stream:
            os.fchmod(stream.fileno(), PRIVATE_FILE)
            stream.write(msgspec.json.encode(running))
            # Locked before anybody can find it: there is no moment at which the file of a living service looks dead.
            _announced.append(os.fdopen(os.dup(stream.fileno()), "rb"))
            _is_free(_announced[-1], exclusive=True)
    except OSError as error:
        raise _unusable(error) from None


def find() -> Running | None:
    """This user's running service, None where there is none, be there a file or not."""
    try:
        with _file().open("rb") as stream:
            return None if _is_free(stream) else msgspec.json.decode(stream.read(), type=Running)
    except (LifecycleError, OSError, msgspec.MsgspecError):
        return None


def _is_free(stream: BinaryIO, *, exclusive: bool = False) -> bool:
    """Whether nobody else holds the lock of an open file, which this process then holds until it closes the file."""
    if os.name != "posix":  # no service runs there
        return True
    import fcntl

    try:
        fcntl.flock(stream.fileno(), (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _left_behind() -> Running | None:
    """What the file of an earlier service says, whose lock this process holds."""
    try:
        return msgspec.json.decode(_file().read_bytes(), type=Running)
    except (OSError, msgspec.MsgspecError):
        return None


def _lock() -> filelock.FileLock:
    return filelock.FileLock(_folder() / LOCK_NAME, timeout=0, mode=PRIVATE_FILE)


def _file() -> Path:
    return _folder() / FILE_NAME


def _folder() -> Path:
    """The folder for both files, to which nobody else has access; raises LifecycleError where there is no such."""
    with warnings.catch_warnings():
        # Without XDG_RUNTIME_DIR, as in a container, it is a folder in /tmp, of which platformdirs makes sure as well.
        warnings.simplefilter("ignore", platformdirs.RuntimeDirWarning)
        try:
            folder = Path(platformdirs.user_runtime_dir("lacuna", ensure_exists=True))
            _make_private(folder)
        except OSError as error:
            raise _unusable(error) from None
    return folder


def _make_private(folder: Path) -> None:
    """Shut others out of a folder. Raises PermissionError where it is theirs: they could pretend to be the service."""
    if os.name != "posix":
        return
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it is no folder of this user's own; set XDG_RUNTIME_DIR", str(folder))
    if stat.S_IMODE(status.st_mode) != PRIVATE_FOLDER:
        folder.chmod(PRIVATE_FOLDER)


def _unusable(error: OSError) -> LifecycleError:
    return LifecycleError(f"cannot use {error.filename or 'the runtime folder'}: {error.strerror or error}")
