"""Finds this user's service, and starts it where there is none."""

import asyncio
import os
import select
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import msgspec
import platformdirs

from lacuna_server.client import lifecycle
from lacuna_server.wire.protocol import ServiceError
from lacuna_server.wire.security import is_loopback

IDLE_EXIT_S = 30 * 60
START_TIMEOUT_S = 20.0
POLL_S = 0.05
COMMAND = (sys.executable, "-I", "-m", "lacuna_server", "serve")
ROOT = Path(sys.executable).anchor
# Leaves the service to the system: editors kill a language server with all its children, and others use the service.
ORPHAN = ("/bin/sh", "-c", '"$@" &', "sh")


class Address(msgspec.Struct, frozen=True):
    """Where a service listens (``http://127.0.0.1:8377``), and the token to send ("": none).

    Without a token no file of a workspace is read, and some services do not answer at all.
    """

    url: str
    token: str = ""

    @property
    def unencrypted(self) -> bool:
        """Whether a token goes to another machine so that others on the way can read it."""
        url = urlsplit(self.url)
        return bool(self.token) and url.scheme == "http" and not is_loopback(url.hostname or "")


async def find_or_start(*arguments: str) -> Address:
    """The address of this user's running service, which is started where there is none.

    ``arguments`` are those of ``lacuna serve``, with whole paths; a service that runs already keeps its own. A service
    started here ends after half an hour without use. Raises ServiceError ``internal`` where it cannot be started, with
    what it said.
    """
    if (running := lifecycle.find()) is not None:
        return Address(running.url, running.token)
    with _opened_log() as log:
        begin = log.tell()
        where = ("--log-file", log.name) if log.name != os.devnull else ()
        # -I: an editor's environment and the workspace it runs in must not choose what is imported.
        lives = _start([*COMMAND, "--idle-exit", str(IDLE_EXIT_S), *where, *arguments], log)
    with lives:
        for _ in range(round(START_TIMEOUT_S / POLL_S)):
            if (running := lifecycle.find()) is not None:
                return Address(running.url, running.token)
            # Where another client was faster, this service ends and the other's is found in the next turns.
            if _ended(lives) and "running" not in (said := _said(log.name, begin)):
                raise ServiceError("internal", f"the service could not be started: {said}")
            await asyncio.sleep(POLL_S)
    raise ServiceError("internal", f"the service did not start within {START_TIMEOUT_S:.0f} s; see {log.name}")


def _start(command: Sequence[str], log: BinaryIO) -> BinaryIO:
    """Start a service that is nobody's child; what is returned is at its end once the service is."""
    reading, writing = os.pipe()
    try:
        subprocess.run(
            [*ORPHAN, *command],
            cwd=ROOT,  # it outlives the folder that somebody works in
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[writing],
            check=True,
        )
    finally:
        os.close(writing)
    return open(reading, "rb", buffering=0)


def _ended(lives: BinaryIO) -> bool:
    """Whether the service has let go of the pipe, into which it never writes."""
    return bool(select.select([lives], [], [], 0)[0])


def address_at(url: str) -> Address:
    """The address ``url``, with the token of this user's own service where it is that one."""
    running = lifecycle.find()
    if running is not None and url.rstrip("/").replace("//localhost:", "//127.0.0.1:") == running.url:
        return Address(running.url, running.token)
    return Address(url)


def _opened_log() -> BinaryIO:
    """The log of services that were started here; where none can be had, they are started all the same."""
    try:
        file = platformdirs.user_log_path("lacuna", ensure_exists=True) / "service.log"
        return open(file, "ab", opener=lambda name, flags: os.open(name, flags, stat.S_IRUSR | stat.S_IWUSR))
    except OSError:
        return open(os.devnull, "ab")


def _said(log_file: str, begin: int) -> str:
    """The last line that was logged since ``begin``."""
    lines = Path(log_file).read_bytes()[begin:].decode(errors="replace").splitlines()
    return lines[-1] if lines else f"it said nothing (see {log_file})"
