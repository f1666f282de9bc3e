"""The service as users start it, and the faults of the table in server/README.md: their effect on clients."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.server.cli.conftest import run

from lacuna_model.core.params import DecodeOptions, Region
from lacuna_server.client import lifecycle
from lacuna_server.client.client import Address, Client, find_or_start
from lacuna_server.daemon.running import TURN_OVER_BYTES
from lacuna_server.wire.protocol import Infill, Open, Progress, Result, ServiceError

SCRIPTED = Path(__file__).parents[1] / "server" / "scripted"
ENDLESS = 100_000
TIMEOUT_S = 120


class Daemon:
    """Starts ``lacuna serve`` with the scripted engine in separate processes, and ends them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.config = folder / "lacuna.toml"
        self._stack = stack
        self.configure()

    def configure(self, engine: str = "scripted_engine:load", **settings: object) -> None:
        lines = [f"{name} = {value!r}" for name, value in {"engine": engine, "port": 0, **settings}.items()]
        self.config.write_text("\n".join(lines))

    def start(self, *arguments: object, **options: Any) -> "subprocess.Popen[Any]":
        command = [sys.executable, "-m", "lacuna_server", "serve", "--config", *map(str, (self.config, *arguments))]
        process = subprocess.Popen(command, **{"stderr": subprocess.PIPE, "text": True, **options})
        self._stack.enter_context(process)
        self._stack.callback(process.kill)
        return process

    def serve(self, *arguments: object, **options: Any) -> tuple["subprocess.Popen[Any]", Address]:
        """Start a service and wait until clients can connect to it."""
        process = self.start(*arguments, **options)
        return process, self.address(process)

    def address(self, process: "subprocess.Popen[Any]") -> Address:
        until(lambda: process.poll() is not None or lifecycle.find() is not None)
        running = lifecycle.find()
        assert running is not None, process.communicate()[1]
        assert running.pid == process.pid
        return running


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", str(SCRIPTED))
    with ExitStack() as stack:
        yield Daemon(tmp_path, stack)
    if (started := lifecycle.find()) is not None:  # by clients
        os.kill(started.pid, signal.SIGTERM)
        until(lambda: lifecycle.find() is None)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.01)


def ended(process: "subprocess.Popen[Any]") -> tuple[int, str]:
    """Wait until a process ends by itself, and return its exit code and log."""
    log = process.communicate(timeout=TIMEOUT_S)[1]
    return process.returncode, log


def workers(process: "subprocess.Popen[Any]") -> list[int]:
    """The process ids of a service's child processes."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


async def fill(client: Client, uri: str, *, steps: int = 1, step_s: float = 0.0) -> Result:
    region = Region(0, 0, max_tokens=steps)
    options = DecodeOptions(temperature=step_s)
    answers = [answer async for answer in client.infill(Infill("", uri, 1, (region,), options=options))]
    assert isinstance(answers[-1], Result)
    return answers[-1]


async def running(client: Client, number: int) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while (await client.status()).running != number:
            await asyncio.sleep(0.01)


def test_a_user_has_only_one_service(daemon: Daemon) -> None:
    first, address = daemon.serve()
    code, said = ended(daemon.start())
    assert code == 2
    assert said == f"lacuna: a service of this user is running at {address.url} (process {first.pid})\n"
    answer = json.loads(run("status", "--json").stdout)
    assert (answer["running"], answer["pid"], answer["url"]) == (True, first.pid, address.url)
    assert answer["status"]["state"] in ("loading", "ready")
    told = run("stop")
    stopped = f"lacuna: stopped the service at {address.url} (process {first.pid})\n"
    assert (told.returncode, told.stdout, told.stderr) == (0, "", stopped)
    assert ended(first)[0] == 0
    assert lifecycle.find() is None
    told = run("status")
    assert told.returncode == 1
    assert told.stderr.startswith("lacuna: no service of this user is running; `lacuna setup` starts one")


def test_the_file_of_a_killed_service_is_noticed(daemon: Daemon) -> None:
    killed, _ = daemon.serve()
    until(lambda: len(workers(killed)) == 1)
    (worker,) = workers(killed)
    killed.kill()
    killed.wait()
    until(lambda: not alive(worker))  # the worker ends with its server
    process, _ = daemon.serve()
    until(lambda: len(workers(process)) == 1)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 0


async def test_shutdown_does_not_wait_longer_than_its_grace_period(daemon: Daemon) -> None:
    daemon.configure(shutdown_grace_s=0.1)
    process, address = daemon.serve()
    async with await Client.connect(address) as client:
        client.open(Open("a", "text", 1))
        endless = asyncio.create_task(fill(client, "a", steps=ENDLESS, step_s=0.02))
        await running(client, 1)
        process.send_signal(signal.SIGINT)
        with pytest.raises(ServiceError) as caught:
            await endless
    assert caught.value.code == "shutting_down"
    assert ended(process)[0] == 0


def test_a_service_ends_at_any_moment_after_it_has_said_that_it_runs(daemon: Daemon) -> None:
    for pause_s in (0.0, 0.01, 0.05):
        process = daemon.start()
        assert process.stderr is not None
        while "event=serving" not in process.stderr.readline():
            pass
        time.sleep(pause_s)
        process.send_signal(signal.SIGINT)
        code, log = ended(process)
        assert code == 0
        assert "reason=SIGINT" in log
        assert "Traceback" not in log


async def test_an_idle_service_ends_once_no_client_is_connected(daemon: Daemon) -> None:
    process, address = daemon.serve("--idle-exit", 0.2)
    async with await Client.connect(address) as client:
        await asyncio.sleep(2.5)
        await client.status()
    code, log = ended(process)
    assert code == 0
    assert "reason=idle" in log


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--host", "0.0.0.0"), "lacuna: listening on 0.0.0.0 needs a token"),
        (("--token-file", "/nonexistent"), "lacuna: /nonexistent: No such file"),
        (("--cert", "cert.pem"), "lacuna: TLS needs both"),
        (("--port", "99999"), "lacuna: --port must be 0 to 65535\n"),
        (("--threads", "-1"), "lacuna: --threads must be 0 to 256\n"),
    ],
)
def test_an_invalid_option_is_reported_in_one_line(daemon: Daemon, arguments: tuple[str, ...], said: str) -> None:
    code, log = ended(daemon.start(*arguments))
    assert code == 2
    assert said in log
    assert log.count("\n") == 1


def test_a_token_that_others_can_read_is_refused_in_one_line(daemon: Daemon, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    for mode in (0o640, 0o602):
        token.chmod(mode)
        code, log = ended(daemon.start("--token-file", token))
        assert (code, log) == (2, f"lacuna: {token}: others can read it or write to it; run: chmod go-rwx {token}\n")


def test_the_status_of_a_model_that_has_failed_is_a_failure(daemon: Daemon) -> None:
    daemon.configure("scripted_engine:load_damaged")
    daemon.serve()
    until(lambda: "failed the weights are damaged" in run("status").stdout)
    assert run("status").returncode == 1
    told = run("status", "--json")
    assert (told.returncode, json.loads(told.stdout)["status"]["state"]) == (1, "failed")


async def test_the_token_of_an_earlier_start_is_worth_nothing(daemon: Daemon) -> None:
    process, earlier = daemon.serve()
    process.send_signal(signal.SIGTERM)
    ended(process)
    _, now = daemon.serve()
    assert now.token != earlier.token
    for token, reads in ((now.token, True), (earlier.token, False)):
        async with await Client.connect(Address(now.url, token)) as client:
            assert client.reads_workspaces is reads


async def test_every_client_needs_the_token_and_this_users_clients_find_it(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "token").chmod(0o600)
    process, address = daemon.serve("--token-file", tmp_path / "token", "--host", "0.0.0.0")
    assert address.token == "secret"
    async with await Client.connect(await find_or_start()) as client:
        await client.status()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{address.url}/health")
    with refused.value:
        assert refused.value.code == 401
    process.send_signal(signal.SIGTERM)
    assert "secret" not in ended(process)[1]


async def test_clients_that_start_a_service_at_once_share_one(daemon: Daemon) -> None:
    # This config loads no model, because the clients request no fill.
    daemon.configure("lacuna_server:missing")
    started = set(await asyncio.gather(*(find_or_start("--config", str(daemon.config)) for _ in range(3))))
    assert len(started) == 1
    async with await Client.connect(started.pop()) as client:
        await client.status()


async def test_the_log_contains_no_text_or_path_of_a_document(daemon: Daemon) -> None:
    process, address = daemon.serve()
    async with await Client.connect(address) as client:
        for uri, text in (("a", "geheim"), ("b", "geheim FAULT"), ("c", "geheim REFUSE")):
            client.open(Open(uri, text, 1, path="geheim.py"))
            await asyncio.gather(fill(client, uri), return_exceptions=True)
        client.feedback("request-1", "accepted")
        await client.status()
    process.send_signal(signal.SIGTERM)
    log = ended(process)[1]
    assert "event=feedback" in log
    assert "ValueError" in log
    assert "geheim" not in log


async def test_the_service_fills_with_the_real_model(daemon: Daemon, coder_path: Path) -> None:
    daemon.config.write_text("port = 0\nthreads = 1\n")
    process, address = daemon.serve()
    text = "def area(width, height):\n    return width * \n"
    at = text.index("* ") + 2
    async with await Client.connect(address) as client:
        client.open(Open("a", text, 1, path="/a.py"))
        asked = Infill("", "a", 1, (Region(at, at, max_tokens=8),), snapshots=True)
        answers = [answer async for answer in client.infill(asked)]
        assert isinstance(answers[0], Progress)
        assert isinstance(answers[-1], Result)
        result = answers[-1].result
        assert result.status in ("ok", "no_valid_fill")
        assert result.stats.nfe > 0
        answers = [answer async for answer in client.infill(asked)]
        assert isinstance(answers[-1], Result)
        again = answers[-1].result
        assert again.fills == result.fills
        assert again.stats.cached_tokens > result.stats.cached_tokens  # the service has kept the document's context
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 0


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
        with suppress(BlockingIOError):
            while True:
                os.write(writing, bytes(4096))
        os.set_blocking(writing, True)
        await asyncio.gather(*(session(address, f"a{number}") for number in range(NUM_SESSIONS)))
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
    finally:
        os.close(reading)
        os.close(writing)


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


async def test_a_service_starts_if_its_log_cannot_be_opened(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    (daemon.folder / "state").write_text("in the way")
    daemon.configure("lacuna_server:missing")
    async with await Client.connect(await find_or_start("--config", str(daemon.config))) as client:
        await client.status()
