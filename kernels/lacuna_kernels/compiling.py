"""The vector instructions that the C kernels have a form for, and the compiler that builds the library for each.

The system's C compiler builds it once for every user and version. This module imports nothing of the package:
``kernels/hatch_build.py`` reads it where torch is not installed.
"""

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
from dataclasses import dataclass
from pathlib import Path

SOURCES = sorted(Path(__file__).with_name("csrc").glob("*.[ch]"))
# Where a platform's wheel has the libraries; elsewhere there is no such folder.
BUILT = Path(__file__).with_name("built")
# Compilers differ in which products and sums they fuse. The code itself says where it wants that, so that all of them
# give the same bits.
FLAGS = ("-O3", "-ffp-contract=off", "-pthread", "-shared", "-fPIC", "-fvisibility=hidden")


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """Vector instructions that ``csrc/simd.h`` supports: capabilities by torch's names, and the compiler's flags."""

    name: str
    needs: tuple[str, ...]
    flags: tuple[str, ...]

    @property
    def built(self) -> Path:
        """The library for these instructions that a platform's wheel has."""
        return BUILT / f"{self.name.lower().replace(' ', '-')}.so"


AVX2 = InstructionSet("AVX2", ("avx2", "fma3"), ("-mavx2", "-mfma"))
AVX_VNNI = InstructionSet("AVX-VNNI", (*AVX2.needs, "avx_vnni"), (*AVX2.flags, "-mavxvnni"))
AVX512 = InstructionSet(
    "AVX-512 VNNI",
    (*AVX2.needs, "avx512_f", "avx512_bw", "avx512_vl", "avx512_dq", "avx512_vnni"),
    (*AVX2.flags, "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni"),
)
AVX512_BF16 = InstructionSet("AVX-512 VNNI and BF16", (*AVX512.needs, "avx512_bf16"), (*AVX512.flags, "-mavx512bf16"))
NEON = InstructionSet("NEON", ("dot",), ("-march=armv8.2-a+dotprod",))
# Best first.
X86 = (AVX512_BF16, AVX512, AVX_VNNI, AVX2)
ARM = (NEON,)
INSTRUCTION_SETS = (*X86, *ARM)


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
