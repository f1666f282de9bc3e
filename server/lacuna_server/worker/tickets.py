"""Tickets of requests, the model that they are submitted to, and the queue in which sessions take turns."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Container, Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Snapshot
from lacuna_server.wire.frames import Frame, Submission
from lacuna_server.wire.protocol import ServiceError, Status


class Waiting(Frame, frozen=True):
    """Tells why a ticket has no answer yet; while the model is loading, ``fraction`` (0..1) of it is loaded."""

    state: Literal["queued", "loading", "running"]
    fraction: float = 0.0


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
    ``finished`` is the report on the ended request. ``expiry`` is called at its deadline while it waits.
    """

    _ids = itertools.count(1)

    def __init__(self, submission: Submission, withdraw: Callable[["Ticket", ServiceError], None]) -> None:
        self.id = next(self._ids)
        self.submission = submission
        self.key = submission.key
        self.line = submission.preferred, submission.session
        self.submitted = time.monotonic()
        self.started: float | None = None
        self.finished: Finished | None = None
        self.expiry: asyncio.TimerHandle | None = None
        self._withdraw = withdraw
        self._waiting: Waiting | None = None
        self._fresh: dict[type, Waiting | Snapshot] = {}
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

    async def events(self) -> AsyncIterator[Waiting | Snapshot]:
        """Yield events until the end; a slow reader gets the latest event of each kind. For one reader only."""
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

    def tell(self, event: Waiting | Snapshot) -> None:
        """Scheduler: report an event; a Waiting that equals the last one is skipped."""
        if self.ended:
            return
        if isinstance(event, Waiting):
            if event == self._waiting:
                return
            self._waiting = event
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


def out_of_time(ticket: Ticket, why: str) -> InfillResult:
    """Return the result of a ticket whose deadline ran out before it was filled: it keeps the text of its regions."""
    text = ticket.request.text.encode()
    kept = tuple(text[region.start : region.end].decode(errors="replace") for region in ticket.request.regions)
    stats = FillStats(ms=(time.monotonic() - ticket.submitted) * 1e3)
    return InfillResult("deadline", kept, stats, why)


PATIENCE_S = 5.0


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

    def num_waiting(self, *, preferred: bool) -> int:
        """Return the number of tickets of preferred sessions, or of the others."""
        return sum(ticket.submission.preferred is preferred for ticket in self._tickets)

    def num_of_session(self, session: str) -> int:
        """Return the number of a session's tickets."""
        return sum(ticket.submission.session == session for ticket in self._tickets)

    def put(self, ticket: Ticket) -> None:
        """Add a ticket as its session's newest. A session that had no ticket goes to the end of the queue."""
        if not self.num_waiting(preferred=False):
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
            one for one in self._tickets if one.key not in busy and (one.submission.preferred or not preferred_only)
        ]
        if not free:
            return None
        others_first = time.monotonic() - self._others_wait_since > PATIENCE_S
        line = min((one.line for one in free), key=lambda line: (line[0] is others_first, self._turns[line]))
        document = next(one.key for one in reversed(free) if one.line == line)
        ticket = next(one for one in free if (one.line, one.key) == (line, document))
        self._turns[line] = next(self._numbers)
        self.remove(ticket)
        if not ticket.submission.preferred:
            self._others_wait_since = time.monotonic()
        return ticket
