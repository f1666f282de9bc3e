"""The ingress's scheduler: every request goes to an engine replica, and again to another one if that is lost.

``Fleet`` is what an ingress sees of the engine replicas and of the other ingresses.
"""

import asyncio
import itertools
import math
import operator
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

import structlog
from msgspec.structs import replace

from lacuna_cluster.links import (
    LOADS,
    Answered,
    Ask,
    Declined,
    EngineFigures,
    IngressFigures,
    Reply,
    Shown,
    Told,
    Unreachable,
)
from lacuna_cluster.users import CALLER, Caller, Usage
from lacuna_model.core.params import FillStats, InfillResult
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Submission
from lacuna_server.wire.protocol import ErrorCode, ServiceError, Status
from lacuna_server.worker.scheduler import LOADING_RETRY_MS, Finished, Ticket
from lacuna_server.worker.tickets import Waiting, out_of_time, with_time_left

log = structlog.get_logger(__name__)

MAX_TRIES = 3
# A text that ends the model process each time shall not end that of every replica.
MAX_CRASHES = 2
FIRST_PAUSE_S, PAUSE_GROWTH, LONGEST_PAUSE_S = 0.02, 2.0, 1.0
# Without a deadline, a request waits so long for a replica that can be reached.
UNREACHABLE_S = 30.0
# An engine ends a request at its deadline; after so much more time the ingress ends it without the engine.
GRACE_S = 0.5
# With these a request is started again, on another replica if there is one.
LOST: frozenset[ErrorCode] = frozenset({"worker_crashed", "shutting_down"})


class Fleet(Protocol):
    """The other replicas of the cluster."""

    def ask(self, ask: Ask) -> AsyncGenerator[Reply]:
        """Send a question to an engine replica, and yield the replies. Raises an exception where it is lost."""
        ...

    async def engines(self) -> list[EngineFigures]:
        """Return the figures of all engine replicas that answer in time."""
        ...

    async def ingresses(self) -> list[IngressFigures]:
        """Return the figures of all running ingresses that answer in time, this one included."""
        ...

    async def metrics(self) -> list[tuple[str, bytes]]:
        """Return name and metrics of all running ingresses that answer in time, this one included."""
        ...


class Known:
    """The engine replicas as they were at the last look, and the way to ask them."""

    def __init__(self, fleet: Fleet, models: Sequence[str]) -> None:
        self._fleet = fleet
        self._models = models
        self.figures: list[EngineFigures] = []

    def ask(self, ask: Ask) -> AsyncGenerator[Reply]:
        """Send a question to the replica that has its document's cache, and yield the replies up to the last one.

        Leaving the iterator stops the work on it. Raises ServiceError ``bad_request`` for an unknown model, and any
        other exception where the replica is lost.
        """
        model = ask.model or self._models[0]
        if model not in self._models:
            raise ServiceError("bad_request", f"there is no model {model}; there are {', '.join(self._models)}")
        return self._fleet.ask(replace(ask, model=model))

    def learn(self, figures: list[EngineFigures]) -> None:
        """Take over what the replicas report."""
        self.figures = figures
        for one in figures:
            LOADS.reported(one.replica, one.num_requests)
        LOADS.keep_only({one.replica for one in figures})

    def status(self) -> Status:
        """Return the state of the first model: ready where a replica is, with the load of all models."""
        statuses = [status for one in self.figures for status in one.statuses.values()]
        first = [one.statuses[self._models[0]] for one in self.figures if self._models[0] in one.statuses]
        order = ("ready", "restarting", "loading", "failed")
        best = min(first, key=lambda status: order.index(status.state), default=Status("", "loading", 0.0))
        return replace(
            best,
            model=self._models[0],
            queued=sum(status.queued for status in statuses),
            running=sum(status.running for status in statuses),
        )


class RemoteScheduler:
    """Passes each request to an engine replica and its answers to its ticket.

    A request fills text and changes nothing, so it can be started again as long as it has no answer; only the first
    answer counts. ``observers`` are called at the end of each accepted request, except for those that fill nothing.
    """

    def __init__(self, config: ServerConfig, engines: Known, usage: Usage) -> None:
        self.observers: list[Callable[[Finished], None]] = []
        self._config = config
        self._engines = engines
        self._usage = usage
        self._ids = itertools.count(1)
        self._under_way: dict[Ticket, asyncio.Task[None]] = {}
        self._closing = False
        self.num_restarted = 0

    def submit(self, submission: Submission) -> Ticket:
        """Send a request; its deadline counts from now. No file of a workspace is read for it.

        Quotas decide between users: none is ``preferred``.

        Raises ServiceError ``rate_limited``, ``overloaded``, ``shutting_down`` or ``loading``.
        """
        caller = CALLER.get()
        submission = replace(
            submission,
            request=replace(submission.request, workspace=""),
            session=f"{caller.user} {submission.session}",
            preferred=False,
        )
        self._admit(caller, submission)
        ticket = Ticket(next(self._ids), submission, self._drop)
        if (status := self._engines.status()).state != "ready":
            ticket.tell(Waiting("loading", fraction=status.fraction))
        task = asyncio.create_task(self._follow(ticket, caller))
        self._under_way[ticket] = task
        task.add_done_callback(lambda done: self._under_way.pop(ticket, None))
        return ticket

    def status(self) -> Status:
        """Return the state of the engine replicas; what this ingress has under way counts at once."""
        status = self._engines.status()
        more = max(0, len(self._under_way) - status.queued - status.running)
        return replace(status, running=status.running + more)

    async def close(self, grace_s: float) -> None:
        """Take no more requests, and refuse those that are under way after ``grace_s`` seconds."""
        self._closing = True
        if self._under_way:
            await asyncio.wait(self._under_way.values(), timeout=grace_s)
        for ticket in list(self._under_way):
            self._drop(ticket, ServiceError("shutting_down", "the ingress ended before the request did"))

    def _admit(self, caller: Caller, submission: Submission) -> None:
        if self._closing:
            raise ServiceError("shutting_down", "the ingress is ending")
        self._usage.admit(caller.user)
        own = sum(ticket.submission.session == submission.session for ticket in self._under_way)
        if own >= self._config.max_queued_per_session + self._config.max_active:
            raise ServiceError("overloaded", f"{own} requests of this session are under way", LOADING_RETRY_MS)
        status = self._engines.status()
        if status.state != "ready" and not submission.wait:
            raise ServiceError("loading", f"no engine replica is ready ({status.fraction:.0%})", LOADING_RETRY_MS)

    async def _follow(self, ticket: Ticket, caller: Caller) -> None:
        """Ask replicas until the ticket has its end."""
        ending: Answered | None = None
        try:
            async with asyncio.timeout(self._limit_s(ticket)):
                ending = await self._try_replicas(ticket, caller)
        except TimeoutError:
            ticket.end(out_of_time(ticket, "the deadline ran out before an engine replica had filled the request"))
        except ServiceError as error:
            ticket.end(error)
        except Exception as error:
            log.error("ask_failed", fault=type(error).__name__)
            ticket.end(ServiceError("internal", f"the ingress failed with {type(error).__name__}"))
        self._observe(ticket, caller, ending)

    def _limit_s(self, ticket: Ticket) -> float | None:
        deadline_ms = ticket.request.options.deadline_ms
        return deadline_ms / 1e3 + GRACE_S if deadline_ms else None

    async def _try_replicas(self, ticket: Ticket, caller: Caller) -> Answered:
        """Return the answer. Raises ServiceError where the request is declined, or lost too often."""
        tries = crashes = 0
        pauses = itertools.accumulate(itertools.repeat(PAUSE_GROWTH), operator.mul, initial=FIRST_PAUSE_S)
        unreachable_since: float | None = None
        while True:
            try:
                return await self._try_once(ticket, caller)
            except ServiceError as error:
                tries, crashes = tries + 1, crashes + (error.code == "worker_crashed")
                if error.code not in LOST or crashes == MAX_CRASHES or tries == MAX_TRIES:
                    raise
                why: Exception = error
            except Unreachable as error:  # nothing was asked, so this is no try, and what follows is no restart
                unreachable_since, why = unreachable_since or time.monotonic(), error
            except Exception as error:  # of the connection, of Ray: the replica or its node is gone
                tries, why = tries + 1, error
            if tries == MAX_TRIES or time.monotonic() - (unreachable_since or math.inf) > UNREACHABLE_S:
                gone = f"{tries} engine replicas were lost while they worked on this" if tries else str(why)
                raise ServiceError("worker_crashed", gone, LOADING_RETRY_MS) from why
            if not isinstance(why, Unreachable):
                self.num_restarted += 1
                log.warning("request_restarted", tries=tries, why=type(why).__name__)
            await asyncio.sleep(min(next(pauses), LONGEST_PAUSE_S))

    async def _try_once(self, ticket: Ticket, caller: Caller) -> Answered:
        async with aclosing(self._engines.ask(_question(ticket, caller))) as replies:
            async for reply in replies:
                match reply:
                    case Told(waiting=waiting):
                        self._tell(ticket, waiting)
                    case Shown(snapshot=snapshot):
                        ticket.tell(snapshot)
                    case Answered() as answered:
                        ticket.end(answered.result)
                        return answered
                    case Declined() as declined:
                        raise ServiceError(declined.code, declined.message, declined.retry_after_ms)
        raise ConnectionError("the replies ended without an answer")

    def _tell(self, ticket: Ticket, waiting: Waiting) -> None:
        if waiting.state == "running" and ticket.started is None:
            ticket.started = time.monotonic()
        ticket.tell(waiting)

    def _drop(self, ticket: Ticket, why: ServiceError) -> None:
        if ticket.ended:
            return
        ticket.end(why)
        if (task := self._under_way.pop(ticket, None)) is not None:
            task.cancel()
            self._observe(ticket, CALLER.get(), None)

    def _observe(self, ticket: Ticket, caller: Caller, ending: Answered | None) -> None:
        if not ticket.request.writes:
            return
        outcome = ticket.outcome
        finished = Finished(
            outcome=outcome.status if isinstance(outcome, InfillResult) else outcome.code if outcome else "internal",
            waited_s=ending.waited_s if ending else (ticket.started or time.monotonic()) - ticket.submitted,
            busy_s=ending.busy_s if ending else 0.0,
            steps=ending.steps if ending else 0,
            stats=outcome.stats if isinstance(outcome, InfillResult) else None,
        )
        self._usage.ended(caller.user, finished.outcome, finished.stats or FillStats())
        for observer in self.observers:
            observer(finished)


def _question(ticket: Ticket, caller: Caller) -> Ask:
    left = with_time_left(ticket.request, ticket.submitted)
    return Ask(0, caller.model, replace(ticket.submission, request=left))
