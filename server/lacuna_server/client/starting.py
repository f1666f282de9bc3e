"""Finds this user's service, and starts it where there is none."""

import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import BinaryIO, Literal

import msgspec

from lacuna_model.hub import models
from lacuna_model.hub.atomic import user_folder
from lacuna_server.client import lifecycle
from lacuna_server.client.lifecycle import Address
from lacuna_server.wire.config import Settings
from lacuna_server.wire.protocol import ServiceError

START_TIMEOUT_S = 20.0
POLL_S = 0.05
TOKEN_VARIABLE = "LACUNA_TOKEN"  # the token of a service given by its URL
LOG_FILES = {"service": "service.log", "lsp": "lacuna-lsp.log"}
COMMAND = (sys.executable, "-I", "-m", "lacuna_server.daemon")
ROOT = Path(sys.executable).anchor
# Detaches the service: an editor kills a language server with all its children, but other clients use the service. Its
# stdin is the pipe that is stdout here: it never reads it, and so the pipe closes when it ends.
ORPHAN_BY_SHELL = ("/bin/sh", "-c", '"$@" <&1 >&2 &', "sh")
ORPHAN_BY_PYTHON = (
    *(sys.executable, "-I", "-c"),
    "import subprocess, sys\n"
    "flags = [getattr(subprocess, name, 0) for name in ('CREATE_NEW_PROCESS_GROUP', 'CREATE_NO_WINDOW')]\n"
    "subprocess.Popen(sys.argv[1:], stdin=sys.stdout, stdout=sys.stderr, stderr=sys.stderr, creationflags=sum(flags))",
)


async def find_or_start(*arguments: str) -> Address:
    """Return the address of this user's service; start one where none runs.

    ``arguments`` are those of ``lacuna_server.daemon``, with absolute paths; a service that runs keeps its own. One
    started here ends after half an hour without use, unless ``idle_exit_s`` of the user's file says otherwise. Raises
    ServiceError ``internal`` where it cannot be started; the message has the last line of its log.
    """
    import asyncio  # `begin` needs none of it, and starts the service while a person waits

    if (running := lifecycle.find()) is not None:
        return running
    with _opened_log() as log:
        begin = log.tell()
        living = _start(arguments, log)
    for _ in range(round(START_TIMEOUT_S / POLL_S)):
        if (running := lifecycle.find()) is not None:
            return running
        # Where another client was faster, this service ends, and a later look finds the other one.
        if not living.is_alive() and "running" not in (said := _log_since(log.name, begin)):
            raise ServiceError("internal", f"the service could not be started: {said}")
        await asyncio.sleep(POLL_S)
    raise ServiceError("internal", f"the service did not start within {START_TIMEOUT_S:.0f} s; see {log.name}")


def begin(*arguments: str) -> None:
    """Start a service as :func:`find_or_start` does, if none runs and one can, and wait for nothing. Raises OSError."""
    if lifecycle.find() is None:
        with _opened_log() as log:
            _start(arguments, log)


def _start(arguments: Sequence[str], log: BinaryIO) -> Thread:
    """Start a service that is not a child of this process; return a thread that ends with the service."""
    where = ("--log-file", log.name) if log.name != os.devnull else ()
    orphan = ORPHAN_BY_SHELL if hasattr(os, "fork") else ORPHAN_BY_PYTHON
    reading, writing = os.pipe()
    try:
        subprocess.run(
            # -I: neither the editor's environment nor the workspace may decide which modules are imported.
            [*orphan, *COMMAND, *where, *arguments],
            cwd=ROOT,  # the service may outlive the current folder
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=log,
            start_new_session=True,
            check=True,
        )
    finally:
        os.close(writing)
    living = Thread(target=_until_closed, args=(reading,), daemon=True)
    living.start()
    return living


def _until_closed(descriptor: int) -> None:
    """Wait for the end of the service, which never writes to the pipe."""
    with open(descriptor, "rb", buffering=0) as pipe:
        pipe.read()


def log_path(program: Literal["service", "lsp"]) -> Path:
    """Return the path of the log of services that clients start, or of the language server."""
    return user_folder("log") / LOG_FILES[program]


def arguments(settings: Settings) -> tuple[str, ...]:
    """Return the arguments of ``lacuna_server.daemon`` for those settings that are not the default."""
    default = Settings()
    settings = msgspec.structs.replace(settings, model=models.absolute(settings.model))
    names = [
        name for name in ("model", "threads", "device", "port") if getattr(settings, name) != getattr(default, name)
    ]
    return tuple(word for name in names for word in (f"--{name}", str(getattr(settings, name))))


def address_at(url: str) -> Address:
    """Return the address ``url``, with the token where it is that of this user's own service."""
    running = lifecycle.find()
    if running is not None and url.rstrip("/").replace("//localhost:", "//127.0.0.1:") == running.url:
        return running
    return Address(url)


def _opened_log() -> BinaryIO:
    """Open the log of services that are started here; the null device where there can be no log."""
    try:
        file = log_path("service")
        file.parent.mkdir(parents=True, exist_ok=True)
        return open(file, "ab", opener=lambda name, flags: os.open(name, flags, stat.S_IRUSR | stat.S_IWUSR))
    except OSError:
        return open(os.devnull, "ab")


def _log_since(log_file: str, begin: int) -> str:
    """Return the last line that was logged after byte ``begin``."""
    lines = Path(log_file).read_bytes()[begin:].decode(errors="replace").splitlines()
    return lines[-1] if lines else f"it printed nothing (see {log_file})"
