"""Schedules requests for the model worker: tickets, bounded queues, fair turns, and an answer for each request."""

import asyncio
import itertools
import math
import time
from collections.abc import AsyncIterator, Callable, Container, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Snapshot
from lacuna_server.wire import frames
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Submission
from lacuna_server.wire.protocol import ModelState, Progress, ServiceError, Status

RETRY_MS = 1000
# For so long after a preferred request a place is kept for the next one.
RESERVED_S = 10.0
# Sessions that are not preferred come first once they have waited so long.
PATIENCE_S = 5.0


class Finished(msgspec.Struct, frozen=True):
    """The report on an ended request, for observers.

    ``outcome`` is the status of its result or the code of its error. ``waited_s`` is the time in the queue, ``busy_s``
    the worker's time and ``steps`` the number of denoising steps.
    """

    outcome: str
    waited_s: float
    busy_s: float = 0.0
    steps: int = 0
    stats: FillStats | None = None


class Ticket:
    """A submitted request. Only the scheduler creates tickets and calls the methods marked with "Scheduler".

    ``submitted`` and ``started`` are ``time.monotonic`` times; ``started`` is None until the worker has the request.
    ``finished`` is the report on the ended request. ``expiry`` ends it at its deadline while it waits.
    """

    _ids = itertools.count(1)

    def __init__(self, submission: Submission, withdraw: Callable[["Ticket", ServiceError], None]) -> None:
        self.id = next(self._ids)
        self.submission = submission
        self.line = submission.preferred, submission.session
        self.submitted = time.monotonic()
        self.started: float | None = None
        self.finished: Finished | None = None
        self.expiry: asyncio.TimerHandle | None = None
        self._withdraw = withdraw
        self._progress: Progress | None = None
        self._fresh: dict[type, Progress | Snapshot] = {}
        self._outcome: InfillResult | ServiceError | None = None
        self._changed = asyncio.Event()

    @property
    def request(self) -> InfillRequest:
        """The request as it was submitted."""
        return self.submission.request

    @property
    def ended(self) -> bool:
        """Whether there is a result or an error."""
        return self._outcome is not None

    def with_time_left(self) -> Submission:
        """Return the submission with its deadline, if it has one, less the time since then."""
        options = self.request.options
        if not options.deadline_ms:
            return self.submission
        left = max(1, options.deadline_ms - round((time.monotonic() - self.submitted) * 1e3))
        request = replace(self.request, options=replace(options, deadline_ms=left))
        return replace(self.submission, request=request)

    async def events(self) -> AsyncIterator[Progress | Snapshot]:
        """Yield events until the end; a slow reader gets the latest event of each kind. For one reader only.

        Who sends on why there is no answer yet gives it the ``id`` of the request.
        """
        while self._fresh or not self.ended:
            fresh, self._fresh = self._fresh, {}
            for event in fresh.values():
                yield event
            if not self._fresh and not self.ended:
                await self._change()

    async def result(self) -> InfillResult:
        """Wait for the result. Raises ServiceError ``cancelled``, ``superseded``, ``worker_crashed`` and others."""
        while self._outcome is None:
            await self._change()
        if isinstance(self._outcome, ServiceError):
            raise self._outcome
        return self._outcome

    def cancel(self, why: ServiceError | None = None) -> None:
        """Stop the request within one denoising step; it ends with ``why``, by default ``cancelled``.

        Does nothing after the end, so a ``finally`` may call it.
        """
        self._withdraw(self, why or ServiceError("cancelled", "the client cancelled the request"))

    def tell(self, event: Progress | Snapshot) -> None:
        """Scheduler: report an event; a Progress that equals the last one is skipped."""
        if self.ended or event == self._progress:
            return
        if isinstance(event, Progress):
            self._progress = event
        self._fresh[type(event)] = event
        self._changed.set()

    def end(self, outcome: InfillResult | ServiceError) -> None:
        """Scheduler: set the outcome; only the first one counts."""
        self.waits_no_more()
        if self._outcome is None:
            self._outcome = outcome
            self._changed.set()

    def waits_no_more(self) -> None:
        """Scheduler: from now on the worker looks at the deadline."""
        if self.expiry is not None:
            self.expiry.cancel()

    def report(self, busy_s: float = 0.0, steps: int = 0) -> Finished:
        """Scheduler: return the report on the ended request."""
        outcome = self._outcome
        assert outcome is not None
        return Finished(
            outcome.code if isinstance(outcome, ServiceError) else outcome.status,
            (self.started or time.monotonic()) - self.submitted,
            busy_s,
            steps,
            outcome.stats if isinstance(outcome, InfillResult) else None,
        )

    def out_of_time(self, why: str) -> InfillResult:
        """Return the result where the deadline ran out before it was filled: it keeps the text of its regions."""
        text = self.request.text.encode()
        kept = tuple(text[region.start : region.end].decode(errors="replace") for region in self.request.regions)
        return InfillResult("deadline", kept, FillStats(ms=(time.monotonic() - self.submitted) * 1e3), why)

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class Model:
    """What fills the requests of a service.

    ``models`` are the names under which it is asked for. ``observers`` are called at the end of each accepted request,
    except for those that fill nothing. ``reads_workspaces`` says whether it reads files of the folder that a request
    names as its workspace.
    """

    reads_workspaces = False

    def __init__(self, models: Sequence[str]) -> None:
        self.models = models
        self.observers: list[Callable[[Finished], None]] = []

    def submit(self, submission: Submission) -> Ticket:
        """Queue a request; its deadline counts from now. Raises ServiceError where it is refused."""
        raise NotImplementedError

    def status(self) -> Status:
        """Return the state of model and queue; the service fills in sessions and documents."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin to load the model."""

    def retry(self) -> None:
        """Try again to load a model that could not be loaded: the cause may have been removed since."""

    async def finish(self, grace_s: float) -> None:
        """Take no more requests; let running ones end within ``grace_s`` seconds, and refuse the others."""

    async def stop(self) -> None:
        """End the model for good."""

    def _observe(self, ticket: Ticket, finished: Finished) -> None:
        if ticket.request.writes:
            ticket.finished = finished
            for observer in self.observers:
                observer(finished)


class FairQueue:
    """Waiting tickets. A session's turn ends when one of its tickets is taken.

    Preferred sessions come first, unless the others have waited ``PATIENCE_S`` seconds since one of theirs was taken.
    """

    def __init__(self) -> None:
        self._tickets: list[Ticket] = []  # in order of arrival
        self._turns: dict[tuple[bool, str], int] = {}  # of sessions, preferred or not: the least has the next turn
        self._numbers = itertools.count()
        self._others_wait_since = time.monotonic()

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[Ticket]:
        return iter(self._tickets)

    def put(self, ticket: Ticket) -> None:
        """Add a ticket as its session's newest. A session that had no ticket goes to the end of the queue."""
        if all(one.submission.preferred for one in self._tickets):
            self._others_wait_since = time.monotonic()
        self._tickets.append(ticket)
        if ticket.line not in self._turns:
            self._turns[ticket.line] = next(self._numbers)

    def remove(self, ticket: Ticket) -> bool:
        """Remove a ticket; return False where it is not in the queue."""
        if ticket not in self._tickets:
            return False
        self._tickets.remove(ticket)
        if all(other.line != ticket.line for other in self._tickets):
            del self._turns[ticket.line]
        return True

    def take(self, busy: Container[tuple[str, str]], *, preferred_only: bool = False) -> Ticket | None:
        """Remove and return the next ticket whose key is not ``busy``; its session goes to the end of the queue.

        Of a session the document comes first that was requested last, and of that its oldest ticket.
        """
        free = [
            one
            for one in self._tickets
            if one.submission.key not in busy and (one.submission.preferred or not preferred_only)
        ]
        if not free:
            return None
        others_first = time.monotonic() - self._others_wait_since > PATIENCE_S
        line = min((one.line for one in free), key=lambda line: (line[0] is others_first, self._turns[line]))
        document = next(one.submission.key for one in reversed(free) if one.line == line)
        ticket = next(one for one in free if (one.line, one.submission.key) == (line, document))
        self._turns[line] = next(self._numbers)
        self.remove(ticket)
        if not ticket.submission.preferred:
            self._others_wait_since = time.monotonic()
        return ticket


class Scheduler(Model):
    """Holds the waiting requests, and gives the worker as many as it may interleave (``max_active``).

    ``send`` sends to the worker. If that has just ended the message is lost, and ``crashed`` follows.
    """

    def __init__(self, config: ServerConfig, send: Callable[[frames.ToWorker], object]) -> None:
        super().__init__([config.model])
        self._config = config
        self._send = send
        self._queue = FairQueue()
        self._running: dict[int, Ticket] = {}
        self._status = Status(config.model, "loading", 0.0)
        self._closing = False
        self._reserved_until = -math.inf
        self._empty = asyncio.Event()

    def submit(self, submission: Submission) -> Ticket:
        """Queue a request. Raises ServiceError ``overloaded``, ``shutting_down``, ``model_failed`` or ``loading``."""
        self._admit(submission)
        ticket = Ticket(submission, self._drop)
        if deadline_ms := submission.request.options.deadline_ms:
            loop = asyncio.get_running_loop()
            ticket.expiry = loop.call_later(deadline_ms / 1e3, self._expire, ticket)
        self._queue.put(ticket)
        self._dispatch()
        return ticket

    def status(self) -> Status:
        """Return the state of model and queue."""
        return replace(self._status, queued=len(self._queue), running=len(self._running))

    async def finish(self, grace_s: float) -> None:
        """Take no more requests. Refuse waiting ones with ``shutting_down``, running ones after ``grace_s`` seconds."""
        self._closing = True
        for ticket in list(self._queue):
            self._drop(ticket, ServiceError("shutting_down", "the service is shutting down"))
        try:
            async with asyncio.timeout(grace_s):
                while self._running:
                    self._empty.clear()
                    await self._empty.wait()
        except TimeoutError:
            self._lose_running(ServiceError("shutting_down", "the service shut down before the request was done"))

    # --- calls of the worker

    def heard(self, message: frames.FromWorker) -> None:
        """Handle a message of the worker."""
        match message:
            case frames.Loading(fraction=fraction, detail=detail):
                self._tell(self._status.state, fraction, detail)
            case frames.Ready(follows_edits=follows_edits, positions=positions):
                self._tell("ready", 1.0, follows_edits=follows_edits, positions=positions)
            case frames.Stepped(id=id, snapshot=snapshot):
                if snapshot is not None and id in self._running:
                    self._running[id].tell(snapshot)
                return
            case frames.Done() | frames.Refused() | frames.Stopped() if ticket := self._running.pop(message.id, None):
                if isinstance(message, frames.Done):
                    ticket.end(message.result)
                elif isinstance(message, frames.Refused):
                    ticket.end(ServiceError(message.code, message.message))
                self._observe(ticket, ticket.report(message.busy_s, message.steps))
                self._empty.set()
        self._dispatch()

    def crashed(self, detail: str, again: str) -> None:
        """Handle a crash: the running requests end with ``worker_crashed``; another worker is being started."""
        self._tell("restarting", 0.0, detail + again, restarts=self._status.restarts + 1, restarted=detail)
        self._lose_running(ServiceError("worker_crashed", f"{detail} while it worked on this request"))
        self._dispatch()

    def failed(self, detail: str) -> None:
        """Handle the worker's final failure: waiting requests end with ``model_failed``."""
        self._tell("failed", 0.0, detail)
        for ticket in list(self._queue):
            self._drop(ticket, ServiceError("model_failed", detail))

    def _tell(self, state: ModelState, fraction: float, detail: str = "", **more: Any) -> None:
        self._status = replace(self._status, state=state, fraction=fraction, detail=detail, **more)

    # --- admission and dispatch

    def _admit(self, asked: Submission) -> None:
        """Raise ServiceError where a request is refused."""
        status, config = self._status, self._config
        if self._closing:
            raise ServiceError("shutting_down", "the service is shutting down")
        if status.state == "failed":
            raise ServiceError("model_failed", status.detail)
        if status.state != "ready" and not asked.wait:
            raise ServiceError("loading", f"the model is being loaded ({status.fraction:.0%})", RETRY_MS)
        if asked.preferred:
            self._reserved_until = time.monotonic() + RESERVED_S
        waiting = sum(ticket.submission.preferred is asked.preferred for ticket in self._queue)
        own = sum(ticket.submission.session == asked.session for ticket in self._queue)
        if waiting >= config.max_queued or own >= config.max_queued_per_session:
            whose = f"{own} of them from this session" if waiting < config.max_queued else "which is the maximum"
            raise ServiceError("overloaded", f"{waiting} requests are waiting, {whose}", RETRY_MS)

    def _dispatch(self) -> None:
        """Give the worker as many requests as it has room for, and tell the others what they wait for."""
        is_ready = self._status.state == "ready"
        while is_ready and len(self._running) < self._config.max_active:
            busy = {running.submission.key for running in self._running.values()}
            ticket = self._queue.take(busy, preferred_only=self._has_reserved_place())
            if ticket is None:
                break
            ticket.waits_no_more()
            ticket.started = time.monotonic()
            self._running[ticket.id] = ticket
            self._send(frames.Start(ticket.id, ticket.with_time_left()))
            ticket.tell(Progress("", "running"))
        for ticket in self._queue:
            ticket.tell(Progress("", "queued") if is_ready else Progress("", "loading", self._status.fraction))

    def _has_reserved_place(self) -> bool:
        """Return whether the last free place at the worker is for preferred requests."""
        others = sum(not ticket.submission.preferred for ticket in self._running.values())
        return time.monotonic() < self._reserved_until and 0 < others >= self._config.max_active - 1

    # --- ends of requests

    def _drop(self, ticket: Ticket, outcome: InfillResult | ServiceError) -> None:
        """End a ticket at once. A running one counts as active until the worker has stopped it, and knows its cost."""
        if ticket.ended:
            return
        ticket.end(outcome)
        if self._queue.remove(ticket):
            self._observe(ticket, ticket.report())
            self._dispatch()
        elif ticket.id in self._running:
            self._send(frames.Stop(ticket.id))

    def _expire(self, ticket: Ticket) -> None:
        self._drop(ticket, ticket.out_of_time("the deadline passed while the request waited in the queue"))

    def _lose_running(self, why: ServiceError) -> None:
        lost, self._running = self._running, {}
        for ticket in lost.values():
            ticket.end(why)
            self._observe(ticket, ticket.report())
        self._empty.set()
