"""One ``infill`` of a conversation: a ticket for each document, with progress and result sent as they arrive."""

import asyncio
import time
from collections.abc import Callable, Sequence

from lacuna_model.core.params import InfillRequest, InfillResult, Snapshot
from lacuna_server.service.audit import refused
from lacuna_server.wire.protocol import (
    Error,
    Filled,
    Infill,
    Progress,
    Result,
    ServerMessage,
    ServiceError,
    Step,
    Target,
)
from lacuna_server.worker.own_model import Submitter
from lacuna_server.worker.scheduler import Submission, Ticket
from lacuna_server.worker.tickets import with_time_left


class _RefusedDocument(Exception):
    """One document of an infill was refused, and with it the whole infill."""

    def __init__(self, uri: str, why: ServiceError) -> None:
        super().__init__(uri, why)
        self.uri = uri
        self.why = why


class RunningInfill:
    """A running infill, from its message to its one answer."""

    def __init__(
        self,
        message: Infill,
        requests: Sequence[InfillRequest],
        scheduler: Submitter,
        *,
        session: str,
        at_once: int,
        preferred: bool,
        send: Callable[[ServerMessage], None],
    ) -> None:
        self.id = message.id
        self.uris = {target.uri for target in message.targets}
        self._message = message
        self._requests = requests
        self._scheduler = scheduler
        self._session = session
        self._turns = asyncio.Semaphore(at_once)
        self._preferred = preferred
        self._send = send
        self._submitted = time.monotonic()
        self._answered = False
        self._task = asyncio.create_task(self._run())

    async def ended(self) -> None:
        """Wait until the infill is answered."""
        await asyncio.wait([self._task])

    def when_done(self, call: Callable[["RunningInfill"], None]) -> None:
        """Call ``call`` after the answer was sent."""
        self._task.add_done_callback(lambda task: call(self))

    def stop(self, why: ServiceError | None = None) -> None:
        """Stop the infill and answer it with an error, by default ``cancelled``; the worker takes no further step."""
        # The answer is sent here, because a task that is cancelled before it has begun never runs.
        self._refuse(why or ServiceError("cancelled", "the client cancelled the request"))
        self._task.cancel()

    async def _run(self) -> None:
        try:
            self._answer(Result(self.id, await self._fill_all()))
        except _RefusedDocument as refused:
            self._refuse(refused.why, refused.uri)

    def _refuse(self, why: ServiceError, uri: str = "") -> None:
        if not self._answered:
            refused(why, "infill")
        self._answer(Error(why.code, str(why), self.id, uri, why.retry_after_ms))

    def _answer(self, answer: Result | Error) -> None:
        if not self._answered:
            self._answered = True
            self._send(answer)

    async def _fill_all(self) -> tuple[Filled, ...]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._fill(target, request))
                    for target, request in zip(self._message.targets, self._requests, strict=True)
                ]
        except* _RefusedDocument as refused:
            raise refused.exceptions[0] from None
        return tuple(task.result() for task in tasks)

    async def _fill(self, target: Target, request: InfillRequest) -> Filled:
        """Fill a document. Where the queue is full, only the first document is refused; later ones wait for room."""
        async with self._turns:
            while True:
                try:
                    ticket = self._submit(target, request)
                    try:
                        return Filled(target.uri, target.version, await self._follow(target, ticket))
                    finally:
                        ticket.cancel()
                except ServiceError as why:
                    if why.code != "overloaded" or target is self._message.targets[0]:
                        raise _RefusedDocument(target.uri, why) from None
                    await asyncio.sleep(why.retry_after_ms / 1e3)

    def _submit(self, target: Target, request: InfillRequest) -> Ticket:
        return self._scheduler.submit(
            Submission(
                with_time_left(request, self._submitted),
                session=self._session,
                document=target.uri,
                snapshots=self._message.snapshots,
                wait=self._message.wait,
                preferred=self._preferred,
            )
        )

    async def _follow(self, target: Target, ticket: Ticket) -> InfillResult:
        async for event in ticket.events():
            if self._answered:  # stopped, while this event was on its way
                break
            if isinstance(event, Snapshot):
                self._send(Step(self.id, target.uri, event))
            else:
                self._send(Progress(self.id, event.state, event.place, event.fraction))
        return await ticket.result()
