"""The fault table of server/README.md: faults of a service, and their effect on clients."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lacuna_server.client import lifecycle
from lacuna_server.client.client import Address, Client, find_or_start
from lacuna_server.daemon.running import TURN_OVER_BYTES
from lacuna_server.wire.protocol import Open, ServiceError

from .test_service import TIMEOUT_S, Daemon, alive, daemon, fill, running, until, workers

__all__ = ["daemon"]

NUM_SESSIONS = 25


async def session(address: Address, uri: str) -> None:
    async with await Client.connect(address, give_up_s=TIMEOUT_S) as client:
        client.open(Open(uri, "text", 1))
        await fill(client, uri)
        client.feedback("request-1", "accepted")
        await client.status()


async def all_are_served(process: "subprocess.Popen[Any]", address: Address) -> None:
    """Run many sessions, kill the worker, run many more sessions, and stop the service properly."""
    await asyncio.gather(*(session(address, f"a{number}") for number in range(NUM_SESSIONS)))
    (worker,) = workers(process)
    os.kill(worker, signal.SIGKILL)
    until(lambda: bool(set(workers(process)) - {worker}))  # before that, the service sends requests to the dead one
    await asyncio.gather(*(session(address, f"b{number}") for number in range(NUM_SESSIONS)))
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


async def test_a_full_log_does_not_affect_clients(daemon: Daemon) -> None:
    with open("/dev/full", "wb") as full:
        await all_are_served(*daemon.serve(stderr=full))


async def test_a_log_that_nobody_reads_does_not_affect_clients(daemon: Daemon) -> None:
    reading, writing = os.pipe()
    try:
        process, address = daemon.serve(stderr=writing)
        os.set_blocking(writing, False)
        with pytest.raises(BlockingIOError):
            _fill(writing)
        os.set_blocking(writing, True)
        await asyncio.gather(*(session(address, f"a{number}") for number in range(NUM_SESSIONS)))
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
    finally:
        os.close(reading)
        os.close(writing)


def _fill(pipe: int) -> None:
    while True:
        os.write(pipe, bytes(4096))


async def test_sigterm_under_load_answers_every_request(daemon: Daemon) -> None:
    daemon.configure(max_active=2)
    process, address = daemon.serve(stderr=subprocess.DEVNULL)
    clients = [await Client.connect(address) for _ in range(NUM_SESSIONS)]
    try:
        for client in clients:
            client.open(Open("a", "text", 1))
        fills = [asyncio.create_task(fill(client, "a", steps=10, step_s=0.02)) for client in clients]
        await running(clients[0], 2)
        (worker,) = workers(process)
        process.terminate()
        answers = await asyncio.gather(*fills, return_exceptions=True)
    finally:
        for client in clients:
            await client.aclose()
    said = [answer.code if isinstance(answer, ServiceError) else "result" for answer in answers]
    assert set(said) == {"result", "shutting_down"}
    assert said.count("result") == 2
    assert process.wait(TIMEOUT_S) == 0
    assert not alive(worker)
    assert lifecycle.find() is None


async def test_a_started_service_is_detached_with_its_log(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = daemon.folder / "workspace"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    daemon.configure("lacuna_server:missing")
    address = await find_or_start("--config", str(daemon.config))
    found = lifecycle.find()
    assert found is not None
    try:
        assert os.readlink(f"/proc/{found.pid}/cwd") == "/"
        # Editors end a language server with all its child processes. The service must not be one of them.
        parent = int(Path(f"/proc/{found.pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert parent != os.getpid()
        assert not Path(f"/proc/{parent}/cmdline").read_bytes().startswith(b"/bin/sh")
        log = next(daemon.folder.glob("state/**/service.log"))
        assert log.stat().st_mode & 0o777 == 0o600
        with log.open("ab") as stream:
            stream.write(b"x" * TURN_OVER_BYTES)
        until(lambda: log.stat().st_size < TURN_OVER_BYTES)
        assert log.with_suffix(".old.log").stat().st_size >= TURN_OVER_BYTES
        async with await Client.connect(address) as client:
            await client.status()
        until(lambda: b"event=session" in log.read_bytes())
    finally:
        os.kill(found.pid, signal.SIGTERM)
        until(lambda: lifecycle.find() is None)


async def test_a_service_starts_if_its_log_cannot_be_opened(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    (daemon.folder / "state").write_text("in the way")
    daemon.configure("lacuna_server:missing")
    address = await find_or_start("--config", str(daemon.config))
    try:
        async with await Client.connect(address) as client:
            await client.status()
    finally:
        found = lifecycle.find()
        assert found is not None
        os.kill(found.pid, signal.SIGTERM)
        until(lambda: lifecycle.find() is None)
