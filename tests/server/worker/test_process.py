import asyncio
import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.server.scripted.scripted_engine import COUNT_VARIABLE, expected

from lacuna_model.core.params import InfillRequest, Region
from lacuna_server.wire import frames
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Done, Failed, FromWorker, Loading, Ready, Refused, Start, Submission
from lacuna_server.worker import process
from lacuna_server.worker.process import MAX_FAILED_STARTS, OwnModel

pytestmark = pytest.mark.usefixtures("scripted_engine")


class Noted(OwnModel):
    """A model that notes what its process says, and what becomes of it."""

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self.said: list[FromWorker] = []
        self.crashes: list[str] = []
        self.failures: list[str] = []
        self._news = asyncio.Event()

    def heard(self, message: FromWorker) -> None:
        self.said.append(message)
        self._news.set()
        super().heard(message)

    def crashed(self, detail: str, again: str) -> None:
        self.crashes.append(detail + again)
        self._news.set()
        super().crashed(detail, again)

    def failed(self, detail: str) -> None:
        self.failures.append(detail)
        self._news.set()
        super().failed(detail)

    async def until(self, condition: Callable[["Noted"], object]) -> None:
        async with asyncio.timeout(30):
            while not condition(self):
                self._news.clear()
                await self._news.wait()

    def count(self, kind: type) -> int:
        return sum(isinstance(message, kind) for message in self.said)


def test_a_worker_of_another_version_than_its_service_says_so() -> None:
    body = msgspec.msgpack.encode({"type": "Setup", "engine": "of before"})
    command = [sys.executable, "-P", "-m", "lacuna_server.worker"]
    ended = subprocess.run(command, input=frames.LENGTH.pack(len(body)) + body, capture_output=True, check=True)
    said = frames.FROM_WORKER.decode(frames.read(io.BytesIO(ended.stdout)) or b"")
    assert isinstance(said, Failed)
    assert "is of another version; `lacuna stop` ends it" in said.message


@asynccontextmanager
async def worker(factory: str, *, load_timeout_s: float = 0.0) -> AsyncIterator[Noted]:
    model = Noted(ServerConfig(engine=f"scripted_engine:{factory}", load_timeout_s=load_timeout_s))
    model.start()
    try:
        yield model
    finally:
        await model.stop()


def start(text: str) -> Start:
    return Start(1, Submission(InfillRequest(text, (Region(0, 0, max_tokens=1),)), "", "d"))


async def test_a_worker_loads_fills_is_restarted_when_killed_and_ends_with_its_server() -> None:
    async with worker("load") as model:
        await model.until(lambda heard: heard.count(Ready))
        assert [type(message) for message in model.said] == [Loading, Ready]
        assert model.pid is not None
        assert os.getpgid(model.pid) != os.getpgid(0)  # Ctrl-C in a terminal does not reach it
        os.kill(model.pid, signal.SIGKILL)
        await model.until(lambda heard: heard.count(Ready) == 2)
        assert len(model.crashes) == 1
        assert "-9" in model.crashes[0]
        model.send(start("text"))
        await model.until(lambda heard: heard.count(Done))
        done = model.said[-1]
        assert isinstance(done, Done)
        assert done.result.fills == (expected("text", 0),)
        pid = model.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_workspace_shadows_no_module_of_the_model_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "msgspec", "lacuna_server", "lacuna_model"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    monkeypatch.chdir(tmp_path)
    async with worker("load") as model:
        await model.until(lambda heard: heard.count(Ready) or heard.crashes)
        assert model.crashes == []


async def test_the_exit_code_is_known_even_if_the_event_loop_learns_of_it_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collect = os.waitpid

    def collect_late(pid: int, options: int) -> tuple[int, int]:
        if not options:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            time.sleep(0.3)
        return collect(pid, options)

    monkeypatch.setattr(os, "waitpid", collect_late)
    async with worker("load") as model:
        await model.until(lambda heard: heard.count(Ready))
        assert model.pid is not None
        os.kill(model.pid, signal.SIGKILL)
        await model.until(lambda heard: heard.crashes)
        assert "-9" in model.crashes[0]


@pytest.mark.parametrize("turns", range(12))
async def test_a_worker_that_dies_at_any_moment_of_the_stop_stays_ended(turns: int) -> None:
    async with worker("load") as model:
        await model.until(lambda heard: heard.count(Ready))
        pid = model.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # the event loop's thread was faster
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            await model.stop()
        with pytest.raises(ChildProcessError):  # nothing is left to reap
            os.waitpid(pid, os.WNOHANG)


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "FIRST_PAUSE_S", 0.01)


@pytest.fixture
def counted(scripted_engine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that gets an ``L`` at each load."""
    monkeypatch.setenv(COUNT_VARIABLE, str(scripted_engine / "count"))
    return scripted_engine / "count"


async def test_a_worker_that_dies_when_it_is_ready_is_restarted_after_longer_and_longer_pauses(
    counted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "FIRST_PAUSE_S", 0.125)
    monkeypatch.setattr(process, "LONGEST_PAUSE_S", 0.5)
    async with worker("load_and_die") as model:
        await model.until(lambda heard: len(heard.crashes) == 6)
    assert model.count(Ready) == 6
    assert not model.failures
    assert model.crashes[0] == "the model process ended with code 9"
    said = [crash.partition(", ")[2] for crash in model.crashes[1:]]
    assert said == [
        f"{number} times in a row, and is started again in {pause} s"
        for number, pause in ((2, 0.125), (3, 0.25), (4, 0.5), (5, 0.5), (6, 0.5))
    ]


@pytest.mark.usefixtures("short_pauses")
async def test_loading_is_given_up_after_a_few_crashes_with_longer_and_longer_pauses(counted: Path) -> None:
    async with worker("load_crashing") as model:
        await model.until(lambda heard: heard.failures)
        assert "code 11" in model.failures[0]
        assert counted.read_text() == "L" * MAX_FAILED_STARTS
        model.retry()  # a new start keeps the longer pauses, so that frequent requests do not load all the time
        await model.until(lambda heard: len(heard.failures) == 2)
    first, *pauses = [crash.rpartition(" in ")[2] for crash in model.crashes]
    assert (first, pauses) == ("the model process ended with code 11", ["0.01 s", "0.04 s", "0.08 s"])


@pytest.mark.usefixtures("short_pauses")
async def test_a_process_that_cannot_be_started_is_given_up_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    async with worker("load") as model:
        await model.until(lambda heard: heard.failures)
    assert model.failures[0].startswith("the model process cannot be started: No such file or directory")


async def test_a_model_that_was_deleted_while_it_ran_fails_with_what_to_do(
    scripted_engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = scripted_engine / "model"
    folder.mkdir()
    monkeypatch.setenv("SCRIPTED_MENDED", str(folder))
    async with worker("load_when_mended") as model:
        await model.until(lambda heard: heard.count(Ready))
        folder.rmdir()
        model.kill()
        await model.until(lambda heard: heard.failures)
        assert model.failures[0].startswith("the weights are damaged; it was there before: put it back, and the next")
        folder.mkdir()
        model.retry()
        await model.until(lambda heard: heard.count(Ready) == 2)


async def test_a_worker_whose_allocation_failed_is_started_anew() -> None:
    async with worker("load") as model:
        await model.until(lambda heard: heard.count(Ready))
        model.send(start("HUGE"))
        await model.until(lambda heard: heard.count(Ready) == 2)
        (refused,) = [message for message in model.said if isinstance(message, Refused)]
        assert "the memory of the machine did not suffice for this request" in refused.message
        assert model.crashes == ["the model process ran out of memory"]
        model.send(start("text"))
        await model.until(lambda heard: heard.count(Done))


async def test_a_program_that_the_engine_starts_does_not_read_its_frames() -> None:
    async with worker("load_with_a_program") as model:
        await model.until(lambda heard: heard.count(Ready) or heard.crashes or heard.failures)
        model.send(start("text"))
        await model.until(lambda heard: heard.count(Done) or heard.crashes or heard.failures)
        assert model.count(Done) == 1


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize(
    ("factory", "num_loads", "why"),
    [
        ("load_nothing", 0, "No such file or directory: '/nowhere/model.safetensors'"),
        ("load_huge", MAX_FAILED_STARTS, "ran out of memory while it loaded the model, 3 times in a row; close other"),
        ("load_hanging", MAX_FAILED_STARTS, "sent nothing for 2 s while it loaded the model"),
    ],
)
async def test_a_model_that_cannot_be_loaded_is_given_up_with_the_reason_and_no_process_is_left(
    counted: Path, factory: str, num_loads: int, why: str
) -> None:
    async with worker(factory, load_timeout_s=2.0) as model:
        await model.until(lambda heard: heard.failures)
        assert why in model.failures[0]
        pid = model.pid
    assert (counted.read_text() if counted.exists() else "") == "L" * num_loads
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
