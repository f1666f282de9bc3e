"""A Python that pretends to be one on Windows, for Lacuna's own modules: ``python`` made by :func:`pretended`.

What the standard library of Windows lacks is missing for them (``fcntl``, ``resource``, ``os.fork``, Unix sockets, ..);
other libraries go on as they are, since they ask for the system's name. So it shows that nothing of that is needed, and
not that Windows does the rest alike: files that are open can be renamed and removed here.
"""

import asyncio
import builtins
import fcntl
import os
import runpy
import signal
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "syslog"}
NAMES = {
    "os": (os, {"fork", "forkpty", "geteuid", "getuid", "getegid", "getgid", "killpg", "getpgid", "setsid", "fchmod",
                "fchown", "chown", "mkfifo", "O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "nice",
                "sched_getaffinity", "sched_setaffinity", "sysconf", "pread", "pwrite"}),
    "signal": (signal, {"SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGPIPE", "SIGALRM"}),
    "socket": (socket, {"AF_UNIX", "SO_PEERCRED", "SO_REUSEPORT"}),
    "asyncio": (asyncio, {"start_unix_server", "open_unix_connection"}),
}  # fmt: skip
CHANGED = {"name": "nt", "supports_dir_fd": set[object]()}
OWN = ("lacuna_", "__main__")


class Lacking(ModuleType):
    """A module without some of its names."""

    def __init__(self, whole: ModuleType, missing: set[str]) -> None:
        super().__init__(whole.__name__)
        self.__dict__["_whole"], self.__dict__["_missing"] = whole, missing

    def __getattr__(self, name: str) -> Any:
        if name in self._missing:
            raise AttributeError(name)
        return CHANGED[name] if self._whole is os and name in CHANGED else getattr(self._whole, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._whole, name, value)


def locking(descriptor: int, mode: int, count: int) -> None:
    """Lock a file, or raise OSError where it is locked, as ``msvcrt.locking`` does."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def pretend() -> None:
    """Let modules of Lacuna import what they find on Windows."""
    lacking: dict[str, ModuleType] = {name: Lacking(whole, missing) for name, (whole, missing) in NAMES.items()}
    lacking["msvcrt"] = msvcrt = ModuleType("msvcrt")
    msvcrt.__dict__.update(locking=locking, LK_NBLCK=2)
    plain = builtins.__import__

    def imported(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> ModuleType:
        if level or not (globals or {}).get("__name__", "").startswith(OWN):
            return plain(name, globals, locals, fromlist, level)
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return lacking[name] if name in lacking else plain(name, globals, locals, fromlist, level)

    builtins.__import__ = imported


def pretended(folder: Path) -> Path:
    """Make such a Python in a folder; what it starts with ``sys.executable`` pretends, too."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P "{__file__}" "$0" "$@"\n')
    python.chmod(0o755)
    return python


def main() -> None:
    """Run a module, a text or a file as Python does: ``[-I] [-P] -m MODULE ..``, ``-c TEXT ..`` or ``FILE ..``."""
    sys.executable, *words = sys.argv[1:]
    while words[0] in ("-I", "-P"):
        words.pop(0)
    if words[0] not in ("-m", "-c"):
        words.insert(0, "")
    how, what, *arguments = words
    sys.argv = ["-c" if how == "-c" else what, *arguments]
    pretend()
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    elif how == "-c":
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    else:
        runpy.run_path(what, run_name="__main__")


if __name__ == "__main__":
    main()
