"""Schedules requests for the model worker: bounded queues, fair turns, cancellation, and an answer for each request."""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

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
from lacuna_server.worker.tickets import FairQueue, Model, Ticket, Waiting, out_of_time

RETRY_MS = 1000
# For so long after a preferred request a place is kept for the next one.
RESERVED_S = 10.0


class Scheduler(Model):
    """Holds the waiting requests, and gives the worker as many as it may interleave (``max_active``).

    ``send`` sends to the worker. If that has just ended the message is lost, and ``crashed`` follows.
    """

    def __init__(self, config: ServerConfig, send: Callable[[ToWorker], object]) -> None:
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
        self._admit(submission.wait)
        if submission.preferred:
            self._reserved_until = time.monotonic() + RESERVED_S
        self._check_room(submission)
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

    def heard(self, message: FromWorker) -> None:
        """Handle a message of the worker."""
        match message:
            case Loading(fraction=fraction, detail=detail):
                self._tell(self._status.state, fraction, detail)
            case Ready(follows_edits=follows_edits, positions=positions):
                self._tell("ready", 1.0, follows_edits=follows_edits, positions=positions)
            case Stepped(id=id, snapshot=snapshot):
                if snapshot is not None and id in self._running:
                    self._running[id].tell(snapshot)
                return
            case Done() | Refused() | Stopped():
                self._finish(message)
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

    # --- admission

    def _admit(self, wait: bool) -> None:
        if self._closing:
            raise ServiceError("shutting_down", "the service is shutting down")
        if self._status.state == "failed":
            raise ServiceError("model_failed", self._status.detail)
        if self._status.state != "ready" and not wait:
            message = f"the model is being loaded ({self._status.fraction:.0%})"
            raise ServiceError("loading", message, RETRY_MS)

    def _check_room(self, asked: Submission) -> None:
        config = self._config
        waiting, own = self._queue.num_waiting(preferred=asked.preferred), self._queue.num_of_session(asked.session)
        if waiting >= config.max_queued or own >= config.max_queued_per_session:
            whose = f"{own} of them from this session" if waiting < config.max_queued else "which is the maximum"
            raise ServiceError("overloaded", f"{waiting} requests are waiting, {whose}", RETRY_MS)

    # --- dispatch

    def _dispatch(self) -> None:
        """Give the worker as many requests as it has room for, and tell the others what they wait for."""
        is_ready = self._status.state == "ready"
        while is_ready and len(self._running) < self._config.max_active:
            busy = {running.key for running in self._running.values()}
            ticket = self._queue.take(busy, preferred_only=self._has_reserved_place())
            if ticket is None:
                break
            ticket.waits_no_more()
            ticket.started = time.monotonic()
            self._running[ticket.id] = ticket
            self._send(Start(ticket.id, ticket.with_time_left()))
            ticket.tell(Waiting("running"))
        for ticket in self._queue:
            ticket.tell(Waiting("queued") if is_ready else Waiting("loading", self._status.fraction))

    def _has_reserved_place(self) -> bool:
        """Return whether the last free place at the worker is for preferred requests."""
        others = sum(not ticket.submission.preferred for ticket in self._running.values())
        return time.monotonic() < self._reserved_until and 0 < others >= self._config.max_active - 1

    # --- ends of requests

    def _drop(self, ticket: Ticket, why: ServiceError) -> None:
        """End a ticket at once. A running one counts as active until the worker has stopped it, and knows its cost."""
        if ticket.ended:
            return
        ticket.end(why)
        if self._queue.remove(ticket):
            self._observe(ticket, ticket.report())
            self._dispatch()
        elif ticket.id in self._running:
            self._send(Stop(ticket.id))

    def _expire(self, ticket: Ticket) -> None:
        """End a ticket whose deadline ran out in the queue; its result keeps the text of its regions."""
        if self._queue.remove(ticket):
            ticket.end(out_of_time(ticket, "the deadline passed while the request waited in the queue"))
            self._observe(ticket, ticket.report())
            self._dispatch()

    def _finish(self, message: Done | Refused | Stopped) -> None:
        if (ticket := self._running.pop(message.id, None)) is None:
            return
        if isinstance(message, Done):
            ticket.end(message.result)
        elif isinstance(message, Refused):
            ticket.end(ServiceError(message.code, message.message))
        self._observe(ticket, ticket.report(message.busy_s, message.steps))
        self._empty.set()

    def _lose_running(self, why: ServiceError) -> None:
        lost, self._running = self._running, {}
        for ticket in lost.values():
            ticket.end(why)
            self._observe(ticket, ticket.report())
        self._empty.set()
