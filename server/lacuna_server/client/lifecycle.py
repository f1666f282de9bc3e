"""One service per user: the file by which clients find it, and the locks that tell whether it still runs.

The service holds ``service.lock`` and a lock on ``service.json``; where readers cannot lock a file for themselves
(Windows), on a file beside it. The operating system releases both when the process ends, so an unlocked
``service.json`` belongs to a service that was killed.
"""

import errno
import os
import signal
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import filelock
import msgspec
import platformdirs

from lacuna_model.core.errors import LacunaError
from lacuna_model.hub import atomic
from lacuna_model.hub.atomic import user_folder
from lacuna_server.wire.config import is_loopback

FILE_NAME = "service.json"
LOCK_NAME = "service.lock"
SOCKET_NAME = "service.sock"
ENDING_NAME = "service.ending"
# A service that ends removes its file a moment before it releases the lock.
PATIENCE_S = 0.3
# A client that looks whether a service runs holds its lock for less than this, where readers have no lock of their own.
LOOK_S = 0.02
PRIVATE_FOLDER = stat.S_IRWXU
# Readers can lock a file for themselves, and a signal asks a process to end and does not end it at once.
_IS_POSIX = hasattr(os, "fork")
# What releases the lock that this process holds as long as it is the service.
_announced: list[Callable[[], None]] = []


class LifecycleError(LacunaError):
    """The service cannot be started or found; the message is one line that gives the reason."""


class Address(msgspec.Struct, frozen=True):
    """The address of a service (``http://127.0.0.1:8377``), and the token to send ("": none).

    Without a token the service reads no file of a workspace, and some services do not answer at all. ``socket`` is the
    path of a socket that leads to the service as well ("": none).
    """

    url: str
    token: str = ""
    socket: str = ""

    @property
    def unencrypted(self) -> bool:
        """Whether the token is sent to another machine without encryption."""
        url = urlsplit(self.url)
        return bool(self.token) and url.scheme == "http" and not is_loopback(url.hostname or "")


class Running(Address, frozen=True, kw_only=True):
    """This user's running service: its process id, and how its own clients reach it."""

    pid: int


@contextmanager
def only_service() -> Iterator[None]:
    """Be this user's only service until the block ends; what a killed one left is removed.

    Raises LifecycleError where there is one already, and where the folder cannot be used.
    """
    lock = _lock()
    try:
        lock.acquire(timeout=PATIENCE_S, poll_interval=LOOK_S / 4)
    except filelock.Timeout:
        running = find()
        where = f"at {running.url} (process {running.pid})" if running else "and is just starting"
        raise LifecycleError(f"a service of this user is running {where}") from None
    except OSError as error:
        raise _unusable(error) from None
    try:
        _remove_files()
        yield
    finally:
        _remove_files()
        while _announced:
            _announced.pop()()
        lock.release()


def announce(running: Running) -> None:
    """Write ``service.json``, readable by this user only. The caller has to be the only service.

    Raises LifecycleError.
    """
    file = announcement()
    try:
        atomic.remove_parts(file)
        with atomic.replacing(file, private=True) as stream:
            stream.write(msgspec.json.encode(running))
            # Locked before it has its name, so that the file of a running service never looks abandoned.
            if _IS_POSIX:
                kept = os.fdopen(os.dup(stream.fileno()), "rb")
                _is_free(kept, exclusive=True)
                _announced.append(kept.close)
            else:
                lock = _lock_beside(running.pid)
                lock.acquire()
                _announced.append(lock.release)
    except OSError as error:
        raise _unusable(error) from None


def find() -> Running | None:
    """Return this user's running service; None where none runs, even if a file was left."""
    try:
        with announcement().open("rb") as stream:
            if _IS_POSIX and _is_free(stream):
                return None
            running = msgspec.json.decode(stream.read(), type=Running)
        return running if _IS_POSIX or _is_held(_lock_beside(running.pid)) else None
    except (LifecycleError, OSError, msgspec.MsgspecError):
        return None


def ask_to_end(running: Running) -> None:
    """Ask a service to end when its running requests have. Raises LifecycleError."""
    try:
        if _IS_POSIX:
            os.kill(running.pid, signal.SIGTERM)
        else:
            (_folder() / ENDING_NAME).touch()
    except OSError as error:
        raise _unusable(error) from None


def is_asked_to_end() -> bool:
    """Return whether the service, which this process is, was asked to end without a signal."""
    return not _IS_POSIX and (_folder() / ENDING_NAME).exists()


def _is_free(stream: BinaryIO, *, exclusive: bool = False) -> bool:
    """Return whether the lock of an open file was free. This process then holds it until it closes the file."""
    import fcntl

    try:
        fcntl.flock(stream.fileno(), (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_held(lock: filelock.BaseFileLock) -> bool:
    """Return whether another process holds a lock."""
    try:
        with lock.acquire(timeout=LOOK_S, poll_interval=LOOK_S / 4):
            return False
    except filelock.Timeout:
        return True


def _lock() -> filelock.FileLock:
    return filelock.FileLock(_folder() / LOCK_NAME, timeout=0, mode=atomic.PRIVATE)


def _lock_beside(pid: int) -> filelock.FileLock:
    """Return the lock that a service holds where its file has none for readers: another one for each process."""
    return filelock.FileLock(_folder() / f"service-{pid}.lock", mode=atomic.PRIVATE)


def announcement() -> Path:
    """Return the path of ``service.json`` of this user's service, running or not. Raises LifecycleError."""
    return _folder() / FILE_NAME


def socket_path() -> Path:
    """Return the path of the socket of this user's service. Raises LifecycleError."""
    return _folder() / SOCKET_NAME


def _remove_files() -> None:
    """Remove what a service leaves; the caller holds ``service.lock``."""
    for file in (announcement(), socket_path(), _folder() / ENDING_NAME):
        file.unlink(missing_ok=True)


def _folder() -> Path:
    """Return the folder for both files, which only this user can access. Raises LifecycleError without one."""
    try:
        folder = _runtime_folder() or user_folder("state") / "run"
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        _make_private(folder)
    except OSError as error:
        raise _unusable(error) from None
    return folder


def _runtime_folder() -> Path | None:
    """Return Lacuna's runtime folder, or None where the system has none for this user, as in a container.

    platformdirs then takes a folder in /tmp, which any other user can make first.
    """
    chosen = bool(os.environ.get("XDG_RUNTIME_DIR"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", platformdirs.RuntimeDirWarning)
        try:
            folder = platformdirs.user_runtime_path("lacuna", appauthor=False)
        except PermissionError:
            if chosen:
                raise
            return None
    if chosen or not hasattr(os, "geteuid"):
        return folder
    return folder if folder.parent.name != f"runtime-{os.geteuid()}" else None


def _make_private(folder: Path) -> None:
    """Make a folder private to this user.

    Raises PermissionError where it belongs to another user, who could pretend to be the service. Where files have no
    owners and modes (Windows), a user's folders are private anyway.
    """
    if not hasattr(os, "geteuid"):
        return
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it is no folder of this user's own; set XDG_RUNTIME_DIR", str(folder))
    if stat.S_IMODE(status.st_mode) != PRIVATE_FOLDER:
        folder.chmod(PRIVATE_FOLDER)


def _unusable(error: OSError) -> LifecycleError:
    return LifecycleError(f"cannot use {error.filename or 'the runtime folder'}: {error.strerror or error}")
