"""Runs programs written by a model, each in its own process with limits on time, memory and files, without network.

A warm helper, which is this file as a script with the standard library alone, forks once per program, because starting
an interpreter takes longer than most tests. A program passes only if it runs to its end: its process then writes a
token that is new for each run, so that an early exit with status 0 counts as a failure.

Isolation has several layers, since not every machine grants all of them: namespaces (user, network, processes) if the
kernel allows them, resource limits always, and an audit hook that refuses sockets, processes and writing. It protects
against a model's mistakes, not against an attacker who knows Python's internals.
"""

import ctypes
import importlib
import json
import os
import resource
import secrets
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, NamedTuple, NoReturn, Self

Verdict = Literal["passed", "failed", "timeout"]

# From linux/sched.h and linux/prctl.h; os.unshare needs Python 3.12.
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC = 0x10000000, 0x20000000, 0x40000000, 0x08000000
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38

# Imported before forking, so that the imports do not count against a program's time limit.
PRELOADED = (
    *("bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "hashlib", "heapq"),
    *("itertools", "math", "operator", "random", "re", "statistics", "string", "typing"),
)
REFUSED = (
    *("socket.", "subprocess.", "os.", "pty.", "shutil.", "ctypes.", "signal.", "resource.", "fcntl.", "tempfile."),
    *("urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.", "sqlite3.", "syslog."),
)
READING = frozenset({"os.listdir", "os.scandir", "os.walk", "os.fwalk"})  # importing a module lists directories
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class SandboxError(Exception):
    """The sandbox's helper process died."""


class RefusedError(Exception):
    """The sandbox refuses an operation of the program."""


class Limits(NamedTuple):
    """The limits of one program: wall-clock seconds, CPU seconds and bytes of address space."""

    wall_s: float = 3.0
    cpu_s: int = 4
    memory: int = 1 << 30


class Outcome(NamedTuple):
    """How a program ended; for a failure, ``detail`` names the exception or the signal."""

    verdict: Verdict
    detail: str = ""


class Sandbox:
    """A context manager that runs the helper process; ``isolation`` names what the kernel granted.

    With ``namespaces`` False it uses no kernel namespaces even if they are available.
    """

    def __init__(self, limits: Limits | None = None, *, namespaces: bool = True) -> None:
        self.limits = limits or Limits()
        self._arguments = () if namespaces else ("--no-namespaces",)
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._helper.kill()  # its children die with it, by the parent-death signal or its process namespace
        self._helper.communicate()

    def run(self, program: str) -> Outcome:
        """Runs one program to its end or its limit.

        Raises SandboxError if the helper dies twice for the same program.
        """
        try:
            return self._ask(program)
        except SandboxError:
            # The kernel may have killed the helper because others used the memory; retry once with a new helper.
            self.__exit__(None, None, None)
            self._start()
            return self._ask(program)

    def _start(self) -> None:
        self._helper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", __file__, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
            text=True,
        )
        self.isolation = str(self._answer())

    def _ask(self, program: str) -> Outcome:
        assert self._helper.stdin is not None
        try:
            print(json.dumps({"program": program, **self.limits._asdict()}), file=self._helper.stdin, flush=True)
        except OSError as error:
            raise SandboxError(f"the test sandbox died: {error}") from error
        return Outcome(*self._answer())

    def _answer(self) -> Any:
        assert self._helper.stdout is not None
        if not (line := self._helper.stdout.readline()):
            raise SandboxError("the test sandbox died")
        return json.loads(line)


def refuse(event: str, args: tuple[Any, ...]) -> None:
    """Audit hook of a program's process (PEP 578), which cannot be removed; raises RefusedError."""
    writes = event == "open" and isinstance(args[2], int) and args[2] & WRITING
    if writes or (event.startswith(REFUSED) and event not in READING):
        raise RefusedError(event)


def isolate() -> str:
    """Enters new namespaces as far as the kernel allows; returns the names of the granted ones."""
    if sys.platform != "linux":
        return "limits"
    libc = ctypes.CDLL(None)
    for flags, name in (
        (CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC, "user+net+pid"),
        (CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC, "net+pid"),
        (CLONE_NEWUSER | CLONE_NEWNET, "user+net"),
    ):
        if libc.unshare(flags) == 0:
            return name
    return "limits"


def renounce() -> None:
    """Makes the calling process die with its parent, and keeps it from gaining rights by executing programs."""
    if sys.platform == "linux":
        libc, zero = ctypes.CDLL(None), ctypes.c_ulong(0)
        libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), zero, zero, zero)
        libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero)


def limit(request: Mapping[str, Any]) -> None:
    """Sets the hard limits of the calling process, which lacks the rights to raise them again."""
    limits = {
        resource.RLIMIT_CPU: request["cpu_s"],
        resource.RLIMIT_AS: request["memory"],
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_NPROC: 0,  # the kernel exempts root, whom the audit hook and the namespace restrict
    }
    for name, value in limits.items():
        resource.setrlimit(name, (value, value))


def execute(request: Mapping[str, Any], pipe: int, token: bytes) -> NoReturn:
    """Runs the program in the calling process and exits; writes ``token`` only if the program reaches its end."""
    write, leave = os.write, os._exit  # kept because a program may replace them
    answer = b""
    try:
        renounce()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.closerange(3, pipe)
        os.closerange(pipe + 1, 256)
        limit(request)
        sys.addaudithook(refuse)
        exec(compile(request["program"], "<program>", "exec"), {"__name__": "program"})
        answer = token
    except BaseException as error:  # a program may raise anything; the report gets its name
        answer = type(error).__name__.encode("utf-8", "replace")[:200]
    finally:
        write(pipe, answer)
        leave(0)


def judge(request: Mapping[str, Any], *, owns_processes: bool) -> Outcome:
    """Forks, waits for the program's end or its limit, kills all its processes and returns the verdict."""
    reader, writer = os.pipe()
    token = secrets.token_hex(16).encode()
    with tempfile.TemporaryDirectory(prefix="lacuna-sandbox-") as folder:
        pid = os.fork()
        if pid == 0:
            os.chdir(folder)
            execute(request, writer, token)
        os.setpgid(pid, pid)
        os.close(writer)
        ready, _, _ = select.select([reader], [], [], request["wall_s"])
        answer = os.read(reader, 4096) if ready else b""
        os.close(reader)
        status = end(pid, owns_processes=owns_processes)
    if not ready:
        return Outcome("timeout")
    if secrets.compare_digest(answer, token):
        return Outcome("passed")
    return Outcome("failed", answer.decode("utf-8", "replace") or how_it_died(status))


def end(pid: int, *, owns_processes: bool) -> int:
    """Kills and reaps a program's process group, or its whole namespace; returns its exit status."""
    os.killpg(pid, signal.SIGKILL)
    if owns_processes:
        os.kill(-1, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    while owns_processes:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    return status


def how_it_died(status: int) -> str:
    """Describes the exit status of a process that wrote no answer."""
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return "left before its tests had run"


def main(arguments: Sequence[str]) -> None:
    """Isolates itself, then answers a request a line; the first answer names the isolation.

    It becomes the first process of its process namespace if it got one. ``--no-namespaces`` skips the namespaces, as on
    a kernel that grants none. ``--program FILE`` isolates itself and becomes that program.
    """
    if "--program" in arguments:
        isolate()
        renounce()
        limit(Limits()._asdict())
        os.execv(arguments[-1], [arguments[-1]])
    for name in PRELOADED:
        importlib.import_module(name)
    isolation = "limits" if "--no-namespaces" in arguments else isolate()
    if "pid" in isolation and (first := os.fork()):
        # Only forked children enter a new process namespace; processes inside cannot kill its first process.
        os.waitpid(first, 0)
        return
    renounce()
    print(json.dumps(isolation), flush=True)
    for line in sys.stdin:
        print(json.dumps(judge(json.loads(line), owns_processes="pid" in isolation)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
