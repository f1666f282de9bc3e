import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.server.scripted.scripted_engine import expected

from lacuna_cluster import remote_scheduler
from lacuna_cluster.links import Answered, Ask, EngineFigures, Reply, Unreachable
from lacuna_cluster.remote_scheduler import MAX_TRIES, RemoteScheduler
from lacuna_cluster.users import CALLER, Caller, Usage
from lacuna_model.core.params import DecodeOptions, FillStats, InfillRequest, InfillResult, Region
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Submission
from lacuna_server.wire.protocol import Error, ServiceError, Status
from lacuna_server.worker.scheduler import Finished

LOST = ConnectionError("lost")
Script = list[Reply | Exception | asyncio.Event]


def answered(ask: Ask) -> Answered:
    fill = expected(ask.submission.request.text, ask.submission.request.regions[0].start)
    return Answered(InfillResult("ok", (fill,), FillStats(tokens=1)), Finished("ok", 0.5, 0.25, 1))


@dataclass
class Engines:
    """Replicas that reply as a script says, one script for each question; without one they answer."""

    scripts: list[Callable[[Ask], Script]] = field(default_factory=list)
    asked: list[Ask] = field(default_factory=list)
    left: int = 0

    async def ask(self, ask: Ask) -> AsyncGenerator[Reply]:
        self.asked.append(ask)
        script = self.scripts.pop(0)(ask) if self.scripts else [answered(ask)]
        try:
            for part in script:
                if isinstance(part, Exception):
                    raise part
                if isinstance(part, asyncio.Event):
                    await part.wait()
                else:
                    yield part
        finally:
            self.left += 1


def scheduler(engines: Engines, state: Any = "ready", **config: Any) -> RemoteScheduler:
    remote = RemoteScheduler(ServerConfig(**config), engines, ("m",), Usage({}, CollectorRegistry()))
    remote.learn([EngineFigures("r", {"m": Status("m", state)})])
    return remote


def request(text: str = "text", deadline_ms: int = 0, **more: Any) -> InfillRequest:
    return InfillRequest(text, (Region(0, 2),), options=DecodeOptions(deadline_ms=deadline_ms), **more)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_scheduler, "FIRST_PAUSE_S", 0.0)


async def code(ticket: Any) -> str:
    with pytest.raises(ServiceError) as caught:
        await ticket.result()
    return caught.value.code


async def test_a_replica_that_cannot_be_reached_costs_no_try(monkeypatch: pytest.MonkeyPatch) -> None:
    away: list[Callable[[Ask], Script]] = [lambda ask: [Unreachable("away")]] * (3 * MAX_TRIES)
    remote = scheduler(Engines(list(away)))
    ticket = remote.submit(Submission(request(), "s", "d"))
    assert (await ticket.result()).status == "ok"
    assert remote.num_restarted == 0
    monkeypatch.setattr(remote_scheduler, "UNREACHABLE_S", -1.0)
    ticket = scheduler(Engines(list(away))).submit(Submission(request(), "s", "d"))
    assert await code(ticket) == "worker_crashed"


async def test_a_replica_that_ends_is_left_for_another_and_other_errors_are_passed_on() -> None:
    engines = Engines([lambda ask: [Error("shutting_down", "bye")]])
    assert (await scheduler(engines).submit(Submission(request(), "s", "d")).result()).status == "ok"
    full = Engines([lambda ask: [Error("overloaded", "full", retry_after_ms=700)]])
    with pytest.raises(ServiceError) as caught:
        await scheduler(full).submit(Submission(request(), "s", "d")).result()
    assert (caught.value.code, caught.value.retry_after_ms) == ("overloaded", 700)


async def test_the_deadline_counts_from_the_first_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_scheduler, "GRACE_S", 0.01)
    monkeypatch.setattr(remote_scheduler, "FIRST_PAUSE_S", 0.05)
    engines = Engines([lambda ask: [LOST], lambda ask: [asyncio.Event()]])
    ticket = scheduler(engines).submit(Submission(request(deadline_ms=200), "s", "d"))
    result = await ticket.result()
    assert (result.status, result.fills) == ("deadline", ("te",))
    first, second = (ask.submission.request.options.deadline_ms for ask in engines.asked)
    assert second < first <= 200
    await asyncio.sleep(0.01)
    assert engines.left == 2


async def test_no_workspace_of_the_server_is_read_and_users_share_no_cache() -> None:
    engines = Engines()
    remote = scheduler(engines)
    for user in ("alice", "bob"):
        CALLER.set(Caller(user, "m"))
        await remote.submit(Submission(request(workspace="/home/alice"), "s", "d")).result()
    assert {ask.submission.request.workspace for ask in engines.asked} == {""}
    assert len({ask.submission.session for ask in engines.asked}) == 2
    assert {ask.model for ask in engines.asked} == {"m"}


async def test_requests_are_refused_over_a_queue_or_before_a_replica_is_ready() -> None:
    full = scheduler(Engines([lambda ask: [asyncio.Event()]] * 9), max_queued_per_session=1, max_active=1)
    for number in range(2):
        full.submit(Submission(request(), "s", str(number)))
    with pytest.raises(ServiceError) as many:
        full.submit(Submission(request(), "s", "d"))
    full.submit(Submission(request(), "t", "d"))
    early = scheduler(Engines(), state="loading")
    with pytest.raises(ServiceError) as loading:
        early.submit(Submission(request(), "s", "d", wait=False))
    patient = early.submit(Submission(request(), "s", "d"))
    assert [event.state async for event in patient.events()] == ["loading"]
    codes = [(error.value.code, error.value.retry_after_ms > 0) for error in (many, loading)]
    assert codes == [("overloaded", True), ("loading", True)]
    await full.finish(0.0)
