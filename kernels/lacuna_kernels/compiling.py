"""Compiles the library of C kernels, once for every user and version, with the system's C compiler."""

import contextlib
import ctypes
import errno
import hashlib
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lacuna_kernels.instruction_sets import FLAGS, SOURCES, InstructionSet

COMPILE_S = 300.0  # seconds; compiling takes 5 to 30


def opened(path: Path) -> ctypes.PyDLL:
    """A library. Its calls keep the interpreter's lock: a call takes about a millisecond, and getting the lock back
    from a computing thread takes five. Raises OSError.
    """
    return ctypes.PyDLL(str(path))


def compiled(folder: Path, instructions: InstructionSet) -> ctypes.PyDLL:
    """The library of ``folder``, which is compiled where it is missing or cannot be opened. Raises OSError."""
    flags = (*FLAGS, *instructions.flags)
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in SOURCES) + " ".join(flags).encode()).hexdigest()[:16]
    target = folder / f"layer-{digest}.so"
    if target.exists() and not _is_own(target):
        raise PermissionError(errno.EPERM, f"{target} can be written to by others")
    if target.exists():
        with contextlib.suppress(OSError):  # a damaged library is built again
            return opened(target)
    _compile(target, flags)
    return opened(target)


def _run(command: Sequence[str]) -> tuple[int, str]:
    """The compiler's exit code and error output; raises TimeoutError, an OSError, where it does not end in time."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            said = process.communicate(timeout=COMPILE_S)[1]
        except subprocess.TimeoutExpired:
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
            process.kill()
            raise TimeoutError(f"{command[0]} has not ended after {COMPILE_S:g} s") from None
    return process.returncode, said


def _is_own(path: Path) -> bool:
    """Whether only this user or the system can write to a file and its folder, or to a folder."""
    if not hasattr(os, "geteuid"):
        return True
    return all(
        status.st_uid in (os.geteuid(), 0) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        for status in ((path.parent if path.is_file() else path).stat(), path.stat())
    )


def _compile(target: Path, flags: Sequence[str]) -> None:
    """Build ``target``; it appears complete or not at all. Raises OSError."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler")
    for missing in reversed([parent for parent in (target.parent, *target.parent.parents) if not parent.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    if not _is_own(target.parent):
        raise PermissionError(errno.EPERM, f"{target.parent} can be written to by others")
    part = target.with_suffix(f".{os.getpid()}.part")
    try:
        units = [str(file) for file in SOURCES if file.suffix == ".c"]
        code, said = _run([compiler, *flags, *units, "-o", str(part)])
        if code:
            raise OSError(f"{compiler} failed: {' '.join(said.splitlines()[:1])}")
        part.chmod(stat.S_IRWXU)  # whatever the umask: one that others can write to is not opened
        with part.open("rb+") as written:
            os.fsync(written.fileno())  # a library that a power cut left incomplete would crash the process
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
