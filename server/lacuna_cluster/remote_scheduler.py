"""The ingress's scheduler: every request goes to an engine replica, and again to another one if that is lost."""

import asyncio
import math
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from lacuna_cluster.links import LOADS, Answered, Ask, EngineFigures, Shown, Unreachable
from lacuna_cluster.users import CALLER, Caller, Usage
from lacuna_model.core.params import FillStats
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Submission
from lacuna_server.wire.protocol import Error, ErrorCode, Progress, ServiceError, Status
from lacuna_server.worker.scheduler import RETRY_MS, Finished, Model, Ticket

if TYPE_CHECKING:  # an ingress itself needs no Ray
    from lacuna_cluster.fleet import RayFleet

log = structlog.get_logger(__name__)

MAX_TRIES = 3
# A text that ends the model process each time shall not end that of every replica.
MAX_CRASHES = 2
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0
# Without a deadline, a request waits so long for a replica that can be reached.
UNREACHABLE_S = 30.0
# An engine ends a request at its deadline; after so much more time the ingress ends it without the engine.
GRACE_S = 0.5
# With these a request is started again, on another replica if there is one.
LOST: frozenset[ErrorCode] = frozenset({"worker_crashed", "shutting_down"})


class RemoteScheduler(Model):
    """The model of an ingress: passes each request to an engine replica and its answers to its ticket.

    A request fills text and changes nothing, so it can be started again as long as it has no answer; only the first
    answer counts. ``figures`` are those of the engine replicas at the last look. Ray Serve starts, replaces and ends
    them.
    """

    def __init__(self, config: ServerConfig, fleet: "RayFleet", models: Sequence[str], usage: Usage) -> None:
        """A request that names none of the ``models`` goes to the first one."""
        super().__init__(models)
        self.figures: list[EngineFigures] = []
        self.num_restarted = 0
        self._config = config
        self._fleet = fleet
        self._usage = usage
        self._under_way: dict[Ticket, asyncio.Task[None]] = {}
        self._closing = False

    def learn(self, figures: list[EngineFigures]) -> None:
        """Take over what the replicas report."""
        self.figures = figures
        for one in figures:
            LOADS.reported(one.replica, one.num_requests)

    def submit(self, submission: Submission) -> Ticket:
        """Send a request; its deadline counts from now. No file of a workspace is read for it.

        Quotas decide between users: none is ``preferred``.

        Raises ServiceError ``rate_limited``, ``overloaded``, ``shutting_down``, ``loading`` or, for an unknown model,
        ``bad_request``.
        """
        caller = CALLER.get()
        submission = replace(
            submission,
            request=replace(submission.request, workspace=""),
            session=f"{caller.user} {submission.session}",
            preferred=False,
        )
        self._admit(caller, submission)
        ticket = Ticket(submission, self._drop)
        if (status := self.status()).state != "ready":
            ticket.tell(Progress("", "loading", status.fraction))
        task = asyncio.create_task(self._follow(ticket, caller))
        self._under_way[ticket] = task
        task.add_done_callback(lambda done: self._under_way.pop(ticket, None))
        return ticket

    def status(self) -> Status:
        """Return the state of the first model: ready where a replica is, with the load of all models.

        What this ingress has under way counts at once.
        """
        statuses = [status for one in self.figures for status in one.statuses.values()]
        first = [one.statuses[self.models[0]] for one in self.figures if self.models[0] in one.statuses]
        order = ("ready", "restarting", "loading", "failed")
        best = min(first, key=lambda status: order.index(status.state), default=Status("", "loading", 0.0))
        queued, running = sum(one.queued for one in statuses), sum(one.running for one in statuses)
        return replace(
            best,
            model=self.models[0],
            queued=queued,
            running=max(running, len(self._under_way) - queued),
            restarts=sum(one.restarts for one in statuses),
        )

    async def finish(self, grace_s: float) -> None:
        """Take no more requests, and refuse those that are under way after ``grace_s`` seconds."""
        self._closing = True
        if self._under_way:
            await asyncio.wait(self._under_way.values(), timeout=grace_s)
        for ticket in list(self._under_way):
            self._drop(ticket, ServiceError("shutting_down", "the ingress ended before the request did"))

    def _admit(self, caller: Caller, submission: Submission) -> None:
        if self._closing:
            raise ServiceError("shutting_down", "the ingress is ending")
        if caller.model and caller.model not in self.models:
            why = f"there is no model {caller.model}; there are {', '.join(self.models)}"
            raise ServiceError("bad_request", why)
        self._usage.admit(caller.user)
        own = sum(ticket.submission.session == submission.session for ticket in self._under_way)
        if own >= self._config.max_queued_per_session + self._config.max_active:
            raise ServiceError("overloaded", f"{own} requests of this session are under way", RETRY_MS)
        status = self.status()
        if status.state != "ready" and not submission.wait:
            raise ServiceError("loading", f"no engine replica is ready ({status.fraction:.0%})", RETRY_MS)

    async def _follow(self, ticket: Ticket, caller: Caller) -> None:
        """Ask replicas until the ticket has its end."""
        finished: Finished | None = None
        try:
            deadline_ms = ticket.request.options.deadline_ms
            async with asyncio.timeout(deadline_ms / 1e3 + GRACE_S if deadline_ms else None):
                answered = await self._try_replicas(ticket, caller)
            ticket.end(answered.result)
            finished = answered.finished
        except TimeoutError:
            ticket.end(ticket.out_of_time("the deadline ran out before an engine replica had filled the request"))
        except ServiceError as error:
            ticket.end(error)
        except Exception as error:
            log.error("ask_failed", fault=type(error).__name__)
            ticket.end(ServiceError("internal", f"the ingress failed with {type(error).__name__}"))
        self._ended(ticket, caller, finished or ticket.report())

    async def _try_replicas(self, ticket: Ticket, caller: Caller) -> Answered:
        """Return the answer. Raises ServiceError where the request is declined, or lost too often."""
        tries = crashes = 0
        pause_s = FIRST_PAUSE_S
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
                raise ServiceError("worker_crashed", gone, RETRY_MS) from why
            if not isinstance(why, Unreachable):
                self.num_restarted += 1
                log.warning("request_restarted", tries=tries, why=type(why).__name__)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _try_once(self, ticket: Ticket, caller: Caller) -> Answered:
        question = Ask(caller.model or self.models[0], ticket.with_time_left())
        async with aclosing(self._fleet.ask(question)) as replies:
            async for reply in replies:
                if isinstance(reply, Answered):
                    return reply
                if isinstance(reply, Error):
                    raise ServiceError(reply.code, reply.message, reply.retry_after_ms)
                if isinstance(reply, Progress) and reply.state == "running" and ticket.started is None:
                    ticket.started = time.monotonic()
                ticket.tell(reply.snapshot if isinstance(reply, Shown) else reply)
        raise ConnectionError("the replies ended without an answer")

    def _drop(self, ticket: Ticket, why: ServiceError) -> None:
        if ticket.ended:
            return
        ticket.end(why)
        if (task := self._under_way.pop(ticket, None)) is not None:
            task.cancel()
            self._ended(ticket, CALLER.get(), ticket.report())

    def _ended(self, ticket: Ticket, caller: Caller, finished: Finished) -> None:
        self._observe(ticket, finished)
        if ticket.request.writes:
            self._usage.ended(caller.user, finished.outcome, finished.stats or FillStats())
