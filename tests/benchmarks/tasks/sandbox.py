"""Runs programs written by a model, each in its own process with limits on time, memory and files, without network.

A warm helper (``sandbox_child``) forks once per program, because starting an interpreter takes longer than most tests.
A program passes only if it runs to its end: the child then writes a token that is new for each run, so that an early
exit with status 0 counts as a failure.
"""

import json
import os
import select
import struct
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from lacuna_model.core.errors import LacunaError

Verdict = Literal["passed", "failed", "timeout"]

_CHILD = Path(__file__).with_name("sandbox_child.py")
_GRACE = 20.0  # seconds beyond a run's own limit after which the helper counts as hung


class SandboxError(LacunaError):
    """The sandbox's helper process could not be started or died."""


class Limits(msgspec.Struct, frozen=True):
    """The limits of one program: wall-clock seconds, CPU seconds and bytes of address space."""

    wall_s: float = 3.0
    cpu_s: int = 4
    memory: int = 1 << 30


class Outcome(msgspec.Struct, frozen=True):
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
        self.isolation = ""
        self._helper: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def run(self, program: str) -> Outcome:
        """Runs one program to its end or its limit.

        Raises SandboxError if the helper dies twice for the same program.
        """
        try:
            return self._ask(program)
        except SandboxError:
            # The kernel may have killed the helper because others used the memory; retry once with a new helper.
            self._stop()
            self._start()
            return self._ask(program)

    def _start(self) -> None:
        try:
            self._helper = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(_CHILD), *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise SandboxError(f"the test sandbox could not be started: {error}") from error
        self.isolation = self._receive(_GRACE)["isolation"]

    def _stop(self) -> None:
        if self._helper is None:
            return
        self._helper.kill()  # its children die with it, by the parent-death signal or its process namespace
        self._helper.wait()
        for pipe in (self._helper.stdin, self._helper.stdout):
            if pipe is not None:
                pipe.close()
        self._helper = None

    def _ask(self, program: str) -> Outcome:
        request = {"program": program, **msgspec.structs.asdict(self.limits)}
        payload = json.dumps(request).encode()
        if self._helper is None or self._helper.stdin is None:
            raise SandboxError("the test sandbox is not running; use it as a context manager")
        try:
            _write_all(self._helper.stdin.fileno(), struct.pack("<I", len(payload)) + payload)
        except OSError as error:
            raise SandboxError(f"the test sandbox died: {error}") from error
        return msgspec.convert(self._receive(self.limits.wall_s + _GRACE), Outcome)

    def _receive(self, timeout: float) -> dict[str, str]:
        size = struct.unpack("<I", self._read(4, timeout))[0]
        answer: dict[str, str] = json.loads(self._read(size, timeout))
        return answer

    def _read(self, size: int, timeout: float) -> bytes:
        if self._helper is None or self._helper.stdout is None:
            raise SandboxError("the test sandbox is not running; use it as a context manager")
        data = b""
        while len(data) < size:
            ready, _, _ = select.select([self._helper.stdout], [], [], timeout)
            part = self._helper.stdout.read(size - len(data)) if ready else b""
            if not part:
                raise SandboxError("the test sandbox died" if ready else "the test sandbox does not answer")
            data += part
        return data


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
