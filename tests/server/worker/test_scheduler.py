import asyncio
import itertools

import pytest

from lacuna_model.core.params import DecodeOptions, FillStats, InfillRequest, InfillResult, Region, Snapshot
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Done, Ready, Start, Stepped, Stop, Stopped, Submission, ToWorker
from lacuna_server.wire.protocol import ServiceError
from lacuna_server.worker import tickets
from lacuna_server.worker.scheduler import Scheduler
from lacuna_server.worker.tickets import Finished, Ticket, Waiting


class FakeWorker:
    """Records the messages that it gets. The test sends its answers."""

    def __init__(self) -> None:
        self.started: list[Start] = []
        self.stopped: list[int] = []

    def send(self, message: ToWorker) -> None:
        match message:
            case Start() as start:
                self.started.append(start)
            case Stop(id=id):
                self.stopped.append(id)

    @property
    def texts(self) -> list[str]:
        return [start.submission.request.text for start in self.started]


class Bench:
    """A scheduler with a fake worker, which is ready by default."""

    def __init__(self, *, ready: bool = True, **config: int) -> None:
        self.worker = FakeWorker()
        self.scheduler = Scheduler(ServerConfig(**config), self.worker.send)
        self.finished: list[Finished] = []
        self.scheduler.observers.append(self.finished.append)
        if ready:
            self.scheduler.heard(Ready("scripted"))

    def submit(self, text: str, *, session: str = "a", document: str = "", **options: bool) -> Ticket:
        """Submit a request. By default, it has its own document, which is named after its text."""
        request = InfillRequest(text, (Region(0, len(text)),))
        return self.scheduler.submit(Submission(request, session, document or text, **options))

    def done(self, ticket: Ticket, busy_s: float = 0.5) -> None:
        self.scheduler.heard(Done(ticket.id, busy_s, 3, result(ticket.request.text)))


def result(text: str) -> InfillResult:
    return InfillResult("ok", (text,), FillStats(steps=3))


async def error(ticket: Ticket) -> str:
    with pytest.raises(ServiceError) as caught:
        await ticket.result()
    return caught.value.code


async def test_the_worker_gets_at_most_max_active_requests_at_once() -> None:
    bench = Bench(max_active=2)
    tickets = [bench.submit(text) for text in "xyz"]
    assert bench.worker.texts == ["x", "y"]
    bench.done(tickets[1])
    assert bench.worker.texts == ["x", "y", "z"]
    bench.done(tickets[0])
    bench.done(tickets[2])
    assert [await ticket.result() for ticket in tickets] == [result("x"), result("y"), result("z")]


async def test_sessions_take_turns_and_their_newest_requests_come_first() -> None:
    bench = Bench(max_active=1)
    tickets = {text: bench.submit(text, session=session) for text, session in zip("pqrstu", "aaaabb", strict=True)}
    for text in ("p", "s", "u", "r", "t"):
        bench.done(tickets[text])
    assert bench.worker.texts == ["p", "s", "u", "r", "t", "q"]


async def test_a_request_for_a_busy_document_waits_without_blocking_others() -> None:
    bench = Bench(max_active=2)
    first = bench.submit("p", document="x")
    for text, document in (("q", "x"), ("r", "y")):
        bench.submit(text, document=document)
    assert bench.worker.texts == ["p", "r"]
    bench.done(first)
    assert bench.worker.texts == ["p", "r", "q"]


async def test_another_request_is_taken_although_preferred_ones_never_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "PATIENCE_S", 0.01)
    bench = Bench(max_active=1)
    running = bench.submit("0", session="own", preferred=True)
    bench.submit("other", session="other")
    for number in itertools.count(1):
        newer = bench.submit(str(number), session="own", preferred=True)
        bench.done(running)
        if bench.worker.texts[-1] == "other":
            break
        running = newer
    assert len(bench.worker.texts) > 2


async def test_preferred_requests_come_first_and_find_a_full_queue_empty() -> None:
    bench = Bench(max_active=1, max_queued=3)
    running = bench.submit("x")
    others = [bench.submit(text, session=text) for text in "abc"]
    with pytest.raises(ServiceError, match="3 requests are waiting"):
        bench.submit("d", session="d")
    own = [bench.submit(text, session="own", preferred=True) for text in "pq"]
    for ticket in (running, own[1], own[0], *others):
        bench.done(ticket)
    assert bench.worker.texts == ["x", "q", "p", "a", "b", "c"]


async def test_a_place_is_kept_while_preferred_requests_come() -> None:
    bench = Bench(max_active=2)
    first, second, _ = (bench.submit(text, session=text) for text in "abc")
    assert bench.worker.texts == ["a", "b"]  # without preferred requests, others have all places
    own = bench.submit("p", preferred=True)
    bench.done(first)
    bench.done(own)
    assert bench.worker.texts == ["a", "b", "p"]
    bench.submit("q", session="own", preferred=True)
    assert bench.worker.texts == ["a", "b", "p", "q"]
    bench.done(second)
    assert bench.worker.texts == ["a", "b", "p", "q", "c"]


async def test_events_report_the_queue_position_and_only_the_latest_step() -> None:
    bench = Bench(max_active=1)
    running = bench.submit("running")
    ticket = bench.submit("mine", snapshots=True)
    bench.submit("newer")
    assert bench.scheduler.status().queued == 2
    events: list[Waiting | Snapshot] = []

    async def follow() -> None:
        async for event in ticket.events():
            events.append(event)

    following = asyncio.create_task(follow())
    await asyncio.sleep(0.05)
    bench.done(running)
    bench.done(next(iter(bench.scheduler._running.values())))
    for step in range(5):
        bench.scheduler.heard(Stepped(ticket.id, Snapshot(step, (), ())))
    bench.done(ticket)
    await following
    assert events == [Waiting("queued"), Waiting("running"), Snapshot(4, (), ())]


async def test_the_deadline_counts_from_submission() -> None:
    bench = Bench(max_active=1)
    running = bench.submit("running")
    options = DecodeOptions(deadline_ms=10_000)
    request = InfillRequest("late", (Region(0, 2),), options=options)
    bench.scheduler.submit(Submission(request, "a", "late"))
    await asyncio.sleep(0.05)
    bench.done(running)
    assert 9_000 < bench.worker.started[1].submission.request.options.deadline_ms <= 9_950


async def test_a_crash_fails_running_requests_and_keeps_waiting_ones() -> None:
    bench = Bench(max_active=1)
    running, waiting = bench.submit("running"), bench.submit("waiting")
    bench.scheduler.crashed("code -9", ", 2 times in a row")
    assert await error(running) == "worker_crashed"
    status = bench.scheduler.status()
    assert (status.state, status.detail) == ("restarting", "code -9, 2 times in a row")
    assert not waiting.ended
    bench.scheduler.heard(Ready("scripted"))
    assert bench.worker.texts == ["running", "waiting"]
    status = bench.scheduler.status()
    assert (status.state, status.restarts, status.restarted) == ("ready", 1, "code -9")


async def test_observers_are_notified_once_of_every_end() -> None:
    bench = Bench(max_active=1)
    tickets = [bench.submit(text) for text in "xyz"]
    tickets[2].cancel()
    bench.done(tickets[0], busy_s=0.2)
    tickets[1].cancel()
    bench.scheduler.heard(Stopped(tickets[1].id, 0.1, 1))
    assert [(one.outcome, one.busy_s, one.steps) for one in bench.finished] == [
        ("cancelled", 0.0, 0),
        ("ok", 0.2, 3),
        ("cancelled", 0.1, 1),
    ]
