"""Runs programs that a model has written, each in its own process with limits on time, memory and files, offline.

A program passes only if it runs to its end: its process then writes a token that is new for each run, so that an early
exit with status 0 counts as a failure. This file is also the script that a process starts with, of the standard library
alone.

Isolation has several layers, since not every machine grants all of them: namespaces (user, network, processes) if the
kernel allows them, resource limits always, and for Python an audit hook that refuses sockets, processes and writing. It
protects against a model's mistakes, not against an attacker who knows Python's internals.
"""

import ctypes
import json
import os
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

Verdict = Literal["passed", "failed", "timeout"]

# Seconds by the clock, in which the interpreter starts, too, and of the processor; bytes of addresses.
WALL_S, CPU_S, MEMORY = 10.0, 3, 1 << 30
# From linux/sched.h and linux/prctl.h; os.unshare needs Python 3.12.
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC = 0x10000000, 0x20000000, 0x40000000, 0x08000000
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
REFUSED = (
    *("socket.", "subprocess.", "os.", "pty.", "shutil.", "ctypes.", "signal.", "resource.", "fcntl.", "tempfile."),
    *("urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.", "sqlite3.", "syslog."),
)
READING = frozenset({"os.listdir", "os.scandir", "os.walk", "os.fwalk"})  # importing a module lists directories
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Outcome(NamedTuple):
    """How a program ended; for a failure, ``detail`` names the exception or the signal."""

    verdict: Verdict
    detail: str = ""


class RefusedError(Exception):
    """The sandbox refuses an operation of the program."""


def run(program: str, *, wall_s: float = WALL_S, namespaces: bool = True) -> Outcome:
    """Runs a program in Python; without ``namespaces`` as on a kernel that grants none."""
    token = secrets.token_hex(16)
    given = json.dumps({"program": program, "token": token, "namespaces": namespaces})
    return _started([], given.encode(), token, wall_s)


def run_binary(binary: Path, token: str, wall_s: float = WALL_S) -> Outcome:
    """Runs a program that prints ``token`` at its end."""
    return _started([str(binary)], b"", token, wall_s)


def _started(arguments: Sequence[str], given: bytes, token: str, wall_s: float) -> Outcome:
    """Runs this file in an empty folder, with which all that it starts ends."""
    command = [sys.executable, "-I", "-S", "-B", __file__, *arguments]
    with (
        tempfile.TemporaryDirectory(prefix="lacuna-sandbox-") as folder,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            cwd=folder,
            start_new_session=True,
        ) as process,
    ):
        try:
            said = process.communicate(given, timeout=wall_s)[0].decode("utf-8", "replace").strip()
        except subprocess.TimeoutExpired:
            return Outcome("timeout")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode == 0 and said.endswith(token):
        return Outcome("passed")
    died = process.returncode if process.returncode < 0 else 128 - process.returncode
    if died == -signal.SIGXCPU:
        return Outcome("timeout")
    return Outcome("failed", said or (signal.Signals(-died).name if died < 0 else "left before its tests had run"))


def refuse(event: str, args: tuple[Any, ...]) -> None:
    """Audit hook of a program's process (PEP 578), which cannot be removed; raises RefusedError."""
    writes = event == "open" and isinstance(args[2], int) and args[2] & WRITING
    if writes or (event.startswith(REFUSED) and event not in READING):
        raise RefusedError(event)


def isolate() -> None:
    """Enters new namespaces as far as the kernel allows, in a child where processes are among them."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    for flags in (
        CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC,
        CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC,
        CLONE_NEWUSER | CLONE_NEWNET,
    ):
        if libc.unshare(flags) == 0:
            # Only children are in a new process namespace. Its first process heeds no signals of its own, and all of
            # the namespace ends with it; so the program is the second.
            for _ in range(2 if flags & CLONE_NEWPID else 0):
                if child := os.fork():
                    renounce()
                    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                    os._exit(code if code >= 0 else 128 - code)
            return


def renounce() -> None:
    """Makes the calling process die with its parent, and keeps it from gaining rights by executing programs."""
    if sys.platform == "linux":
        libc, zero = ctypes.CDLL(None), ctypes.c_ulong(0)
        libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), zero, zero, zero)
        libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero)


def limit() -> None:
    """Sets the hard limits of the calling process, which lacks the rights to raise them again."""
    limits = {
        resource.RLIMIT_AS: MEMORY,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_NPROC: 0,  # the kernel exempts root, whom the audit hook and the namespace restrict
    }
    for name, value in limits.items():
        resource.setrlimit(name, (value, value))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))


def execute(program: str, token: bytes) -> NoReturn:
    """Runs a program in the calling process and exits; writes ``token`` only if the program reaches its end."""
    write, leave, answer = os.write, os._exit, b""  # kept because a program may replace them
    said = os.dup(1)
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        limit()
        sys.addaudithook(refuse)
        exec(compile(program, "<program>", "exec"), {"__name__": "program"})
        answer = token
    except BaseException as error:  # a program may raise anything; the report gets its name
        answer = type(error).__name__.encode("utf-8", "replace")[:200]
    finally:
        write(said, answer)
        leave(0)


def main(arguments: Sequence[str]) -> None:
    """Isolates itself, and becomes the program that is named, or the one in Python that is read from its input."""
    asked = {} if arguments else json.load(sys.stdin)
    if asked.get("namespaces", True):
        isolate()
    renounce()
    if not arguments:
        execute(asked["program"], asked["token"].encode())
    limit()
    os.execv(arguments[0], [*arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
