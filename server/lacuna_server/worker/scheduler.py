"""Schedules requests for the model worker: bounded queues, fair turns, cancellation, and an answer for each request."""

import asyncio
import itertools
import math
import time
from collections.abc import Callable

from msgspec.structs import replace

from lacuna_model.core.params import InfillResult
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import (
    Done,
    FromWorker,
    Loading,
    Ready,
    Refused,
    Start,
    Stepped,
    Stop,
    Stopped,
    Submission,
    ToWorker,
)
from lacuna_server.wire.protocol import ModelState, ServiceError, Status
from lacuna_server.worker.tickets import FairQueue, Finished, Ticket, Waiting, out_of_time, with_time_left

RETRY_MS = 1000
# For so long after a preferred request a place is kept for the next one.
RESERVED_S = 10.0


class Scheduler:
    """Holds the waiting requests, and gives the worker as many as it may interleave (``max_active``).

    ``observers`` are called at the end of each accepted request, except for those that fill nothing.
    """

    def __init__(self, config: ServerConfig) -> None:
        self.observers: list[Callable[[Finished], None]] = []
        self._config = config
        self._send: Callable[[ToWorker], object] | None = None
        self._queue = FairQueue()
        self._running: dict[int, Ticket] = {}
        self._dropped: dict[int, ServiceError] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._ids = itertools.count(1)
        self._state: ModelState = "loading"
        self._fraction = 0.0
        self._detail = ""
        self._ready = Ready("")
        self._restarts, self._restarted = 0, ""
        self._closing = False
        self._reserved_until = -math.inf
        self._empty = asyncio.Event()

    def attach(self, send: Callable[[ToWorker], object]) -> None:
        """Use a worker, to which ``send`` sends. Call it once, before the first request.

        If the worker has just ended a message is lost, and ``crashed`` follows.
        """
        self._send = send

    def submit(self, submission: Submission) -> Ticket:
        """Queue a request; its deadline counts from now.

        Raises ServiceError ``overloaded``, ``shutting_down``, ``model_failed`` or ``loading``.
        """
        self._admit(submission.wait)
        if submission.preferred:
            self._reserved_until = time.monotonic() + RESERVED_S
        self._check_room(submission.session, preferred=submission.preferred)
        ticket = Ticket(next(self._ids), submission, self._drop)
        if deadline_ms := submission.request.options.deadline_ms:
            loop = asyncio.get_running_loop()
            self._timers[ticket.id] = loop.call_later(deadline_ms / 1e3, self._expire, ticket)
        self._queue.put(ticket)
        self._dispatch()
        return ticket

    def status(self) -> Status:
        """Return the state of model and queue; the service fills in sessions and documents."""
        return Status(
            model=self._config.model,
            state=self._state,
            fraction=self._fraction,
            detail=self._detail,
            queued=len(self._queue),
            running=len(self._running),
            follows_edits=self._ready.follows_edits,
            positions=self._ready.positions,
            restarts=self._restarts,
            restarted=self._restarted,
        )

    def silent_s(self, last_heard: float) -> float:
        """Return the seconds for which the worker has had work and sent nothing.

        ``last_heard`` is the monotonic time of its last message.
        """
        begun = [ticket.started for ticket in self._running.values() if ticket.started is not None]
        return time.monotonic() - max(last_heard, min(begun)) if begun else 0.0

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

    def heard(self, message: FromWorker) -> None:
        """Handle a message of the worker."""
        match message:
            case Loading(fraction=fraction, detail=detail):
                self._fraction, self._detail = fraction, detail
            case Ready():
                self._ready = message
                self._state, self._fraction, self._detail = "ready", 1.0, ""
            case Stepped(id=id, snapshot=snapshot):
                if snapshot is not None and id in self._running:
                    self._running[id].tell(snapshot)
                return
            case Done() | Refused() | Stopped():
                self._finish(message)
        self._dispatch()

    def crashed(self, detail: str, again: str) -> None:
        """Handle a crash: the running requests end with ``worker_crashed``; another worker is being started."""
        self._state, self._fraction, self._detail = "restarting", 0.0, detail + again
        self._restarts, self._restarted = self._restarts + 1, detail
        self._lose_running(ServiceError("worker_crashed", f"{detail} while it worked on this request"))
        self._dispatch()

    def again(self) -> None:
        """Note that a worker is being started after a final failure."""
        self._state, self._fraction, self._detail = "loading", 0.0, ""

    def failed(self, detail: str) -> None:
        """Handle the worker's final failure: waiting requests end with ``model_failed``."""
        self._state, self._fraction, self._detail = "failed", 0.0, detail
        for ticket in list(self._queue):
            self._drop(ticket, ServiceError("model_failed", detail))

    # --- admission

    def _admit(self, wait: bool) -> None:
        if self._closing:
            raise ServiceError("shutting_down", "the service is shutting down")
        if self._state == "failed":
            raise ServiceError("model_failed", self._detail)
        if self._state != "ready" and not wait:
            message = f"the model is being loaded ({self._fraction:.0%})"
            raise ServiceError("loading", message, RETRY_MS)

    def _check_room(self, session: str, *, preferred: bool) -> None:
        config = self._config
        waiting, own = self._queue.num_waiting(preferred=preferred), self._queue.num_of_session(session)
        if waiting >= config.max_queued or own >= config.max_queued_per_session:
            whose = f"{own} of them from this session" if waiting < config.max_queued else "which is the maximum"
            raise ServiceError("overloaded", f"{waiting} requests are waiting, {whose}", RETRY_MS)

    # --- dispatch

    def _dispatch(self) -> None:
        """Give the worker as many requests as it has room for, and tell the others what they wait for."""
        while self._send is not None and self._state == "ready" and len(self._running) < self._config.max_active:
            busy = {running.key for running in self._running.values()}
            ticket = self._queue.take(busy, preferred_only=self._has_reserved_place())
            if ticket is None:
                break
            self._begin(ticket, self._send)
        for ticket in self._queue:
            ticket.tell(Waiting("queued") if self._state == "ready" else Waiting("loading", self._fraction))

    def _has_reserved_place(self) -> bool:
        """Return whether the last free place at the worker is for preferred requests."""
        others = sum(not ticket.submission.preferred for ticket in self._running.values())
        return time.monotonic() < self._reserved_until and 0 < others >= self._config.max_active - 1

    def _begin(self, ticket: Ticket, send: Callable[[ToWorker], object]) -> None:
        self._stop_timer(ticket)
        ticket.started = time.monotonic()
        self._running[ticket.id] = ticket
        left = with_time_left(ticket.request, ticket.submitted)
        send(Start(ticket.id, replace(ticket.submission, request=left)))
        ticket.tell(Waiting("running"))

    # --- ends of requests

    def _drop(self, ticket: Ticket, why: ServiceError) -> None:
        """End a ticket at once. A running one counts as active until the worker has stopped it."""
        if ticket.ended:
            return
        if self._queue.remove(ticket):
            self._end(ticket, why)
            self._dispatch()
        elif ticket.id in self._running:
            self._stop_timer(ticket)
            ticket.end(why)
            self._dropped[ticket.id] = why  # its cost is known once the worker has stopped
            if self._send is not None:
                self._send(Stop(ticket.id))

    def _expire(self, ticket: Ticket) -> None:
        """End a ticket whose deadline ran out in the queue; its result keeps the text of its regions."""
        if self._queue.remove(ticket):
            self._end(ticket, out_of_time(ticket, "the deadline passed while the request waited in the queue"))
            self._dispatch()

    def _finish(self, message: Done | Refused | Stopped) -> None:
        ticket = self._running.pop(message.id, None)
        if ticket is None:
            return
        if (why := self._dropped.pop(message.id, None)) is not None:
            self._observe(ticket, why, message)
        elif isinstance(message, Done):
            self._end(ticket, message.result, message)
        elif isinstance(message, Refused):
            self._end(ticket, ServiceError(message.code, message.message), message)
        self._empty.set()

    def _lose_running(self, why: ServiceError) -> None:
        lost, self._running = self._running, {}
        for ticket in lost.values():
            if (dropped := self._dropped.pop(ticket.id, None)) is not None:
                self._observe(ticket, dropped, None)
            self._end(ticket, why)
        self._empty.set()

    def _end(
        self, ticket: Ticket, outcome: InfillResult | ServiceError, ending: Done | Refused | Stopped | None = None
    ) -> None:
        if ticket.ended:
            return
        self._stop_timer(ticket)
        ticket.end(outcome)
        self._observe(ticket, outcome, ending)

    def _observe(
        self, ticket: Ticket, outcome: InfillResult | ServiceError, ending: Done | Refused | Stopped | None
    ) -> None:
        if not ticket.request.writes:
            return
        finished = Finished(
            outcome=outcome.code if isinstance(outcome, ServiceError) else outcome.status,
            waited_s=(ticket.started or time.monotonic()) - ticket.submitted,
            busy_s=ending.busy_s if ending is not None else 0.0,
            steps=ending.steps if ending is not None else 0,
            stats=outcome.stats if isinstance(outcome, InfillResult) else None,
        )
        ticket.finished = finished
        for observer in self.observers:
            observer(finished)

    def _stop_timer(self, ticket: Ticket) -> None:
        timer = self._timers.pop(ticket.id, None)
        if timer is not None:
            timer.cancel()
