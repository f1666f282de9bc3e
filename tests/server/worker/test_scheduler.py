import asyncio
import itertools

import pytest

from lacuna_model.core.params import DecodeOptions, FillStats, InfillRequest, InfillResult, Region, Snapshot
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Done, Ready, Start, Stepped, Stopped, Submission, ToWorker
from lacuna_server.wire.protocol import Progress, ServiceError
from lacuna_server.worker import scheduler
from lacuna_server.worker.scheduler import Finished, Scheduler, Ticket


class Bench:
    """A scheduler whose worker only notes what is started; it is ready, and the test sends its answers."""

    def __init__(self, **config: int) -> None:
        self.sent: list[ToWorker] = []
        self.scheduler = Scheduler(ServerConfig(**config), self.sent.append)
        self.finished: list[Finished] = []
        self.scheduler.observers.append(self.finished.append)
        self.scheduler.heard(Ready("scripted"))

    @property
    def started(self) -> list[InfillRequest]:
        return [message.submission.request for message in self.sent if isinstance(message, Start)]

    @property
    def texts(self) -> list[str]:
        return [request.text for request in self.started]

    def submit(self, text: str, *, session: str = "a", document: str = "", **options: bool) -> Ticket:
        """Submit a request. By default, it has its own document, which is named after its text."""
        request = InfillRequest(text, (Region(0, len(text)),))
        return self.scheduler.submit(Submission(request, session, document or text, **options))

    def done(self, ticket: Ticket, busy_s: float = 0.5) -> None:
        self.scheduler.heard(Done(ticket.id, busy_s, 3, result(ticket.request.text)))


def result(text: str) -> InfillResult:
    return InfillResult("ok", (text,), FillStats(steps=3))


async def test_the_worker_gets_at_most_max_active_requests_at_once() -> None:
    bench = Bench(max_active=2)
    tickets = [bench.submit(text) for text in "xyz"]
    assert bench.texts == ["x", "y"]
    bench.done(tickets[1])
    assert bench.texts == ["x", "y", "z"]
    bench.done(tickets[0])
    bench.done(tickets[2])
    assert [await ticket.result() for ticket in tickets] == [result("x"), result("y"), result("z")]


async def test_sessions_take_turns_and_their_newest_requests_come_first() -> None:
    bench = Bench(max_active=1)
    tickets = {text: bench.submit(text, session=session) for text, session in zip("pqrstu", "aaaabb", strict=True)}
    for text in ("p", "s", "u", "r", "t"):
        bench.done(tickets[text])
    assert bench.texts == ["p", "s", "u", "r", "t", "q"]


async def test_a_request_for_a_busy_document_waits_without_blocking_others() -> None:
    bench = Bench(max_active=2)
    first = bench.submit("p", document="x")
    for text, document in (("q", "x"), ("r", "y")):
        bench.submit(text, document=document)
    assert bench.texts == ["p", "r"]
    bench.done(first)
    assert bench.texts == ["p", "r", "q"]


async def test_another_request_is_taken_although_preferred_ones_never_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "PATIENCE_S", 0.01)
    bench = Bench(max_active=1)
    running = bench.submit("0", session="own", preferred=True)
    bench.submit("other", session="other")
    for number in itertools.count(1):
        newer = bench.submit(str(number), session="own", preferred=True)
        bench.done(running)
        if bench.texts[-1] == "other":
            break
        running = newer
    assert len(bench.texts) > 2


async def test_preferred_requests_come_first_and_find_a_full_queue_empty() -> None:
    bench = Bench(max_active=1, max_queued=3)
    running = bench.submit("x")
    others = [bench.submit(text, session=text) for text in "abc"]
    with pytest.raises(ServiceError, match="3 requests are waiting"):
        bench.submit("d", session="d")
    own = [bench.submit(text, session="own", preferred=True) for text in "pq"]
    for ticket in (running, own[1], own[0], *others):
        bench.done(ticket)
    assert bench.texts == ["x", "q", "p", "a", "b", "c"]


async def test_a_place_is_kept_while_preferred_requests_come() -> None:
    bench = Bench(max_active=2)
    first, second, _ = (bench.submit(text, session=text) for text in "abc")
    assert bench.texts == ["a", "b"]  # without preferred requests, others have all places
    own = bench.submit("p", preferred=True)
    bench.done(first)
    bench.done(own)
    assert bench.texts == ["a", "b", "p"]
    bench.submit("q", session="own", preferred=True)
    assert bench.texts == ["a", "b", "p", "q"]
    bench.done(second)
    assert bench.texts == ["a", "b", "p", "q", "c"]


async def test_events_report_the_queue_position_and_only_the_latest_step() -> None:
    bench = Bench(max_active=1)
    running = bench.submit("running")
    ticket = bench.submit("mine", snapshots=True)
    bench.submit("newer")
    assert bench.scheduler.status().queued == 2
    events: list[Progress | Snapshot] = []

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
    assert events == [Progress("", "queued"), Progress("", "running"), Snapshot(4, (), ())]


async def test_the_deadline_counts_from_submission() -> None:
    bench = Bench(max_active=1)
    running = bench.submit("running")
    options = DecodeOptions(deadline_ms=10_000)
    request = InfillRequest("late", (Region(0, 2),), options=options)
    bench.scheduler.submit(Submission(request, "a", "late"))
    await asyncio.sleep(0.05)
    bench.done(running)
    assert 9_000 < bench.started[1].options.deadline_ms <= 9_950


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
