import asyncio
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lacuna_model.core.params import DecodeOptions, Region
from lacuna_server.client import lifecycle
from lacuna_server.client.client import Address, Client, find_or_start
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
        return Address.of(running)


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", str(SCRIPTED))
    with ExitStack() as stack:
        yield Daemon(tmp_path, stack)


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
    told = subprocess.run([sys.executable, "-m", "lacuna_server", "status", "--json"], capture_output=True, text=True)
    answer = json.loads(told.stdout)
    assert (answer["running"], answer["pid"], answer["url"]) == (True, first.pid, address.url)
    assert answer["status"]["state"] in ("loading", "ready")
    told = subprocess.run([sys.executable, "-m", "lacuna_server", "stop"], capture_output=True, text=True)
    stopped = f"lacuna: stopped the service at {address.url} (process {first.pid})\n"
    assert (told.returncode, told.stdout, told.stderr) == (0, "", stopped)
    assert ended(first)[0] == 0
    assert lifecycle.find() is None
    told = subprocess.run([sys.executable, "-m", "lacuna_server", "status"], capture_output=True, text=True)
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
    code, log = ended(process)
    assert code == 0
    assert f"event=stale_file pid={killed.pid}" in log


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
    command = [sys.executable, "-m", "lacuna_server", "status"]

    def status(*options: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([*command, *options], capture_output=True, text=True)

    until(lambda: "failed" in status().stdout)
    told = status()
    assert told.returncode == 1
    assert "failed the weights are damaged" in told.stdout
    assert (status("--json").returncode, json.loads(status("--json").stdout)["status"]["state"]) == (1, "failed")


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
    started: list[Address] = []
    try:
        started += await asyncio.gather(*(find_or_start("--config", str(daemon.config)) for _ in range(3)))
        assert len(set(started)) == 1
        async with await Client.connect(started[0]) as client:
            await client.status()
    finally:
        subprocess.run([sys.executable, "-m", "lacuna_server", "stop"], check=True)


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
