"""One request on its way through the scheduler, as whoever submitted it sees it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Literal

import msgspec

from lacuna_model.core.params import InfillRequest, InfillResult, Snapshot
from lacuna_server.wire.protocol import ServiceError


class Waiting(msgspec.Struct, frozen=True):
    """Why a ticket has no answer yet: ``place`` requests come first, or ``fraction`` (0..1) of the model is loaded."""

    state: Literal["queued", "loading", "running"]
    place: int = 0
    fraction: float = 0.0


class Ticket:
    """A submitted request; only the scheduler makes tickets and calls what is marked as its own.

    ``submitted`` and ``started`` are ``time.monotonic`` instants, ``started`` None until the worker has it.
    """

    def __init__(
        self,
        id: int,
        request: InfillRequest,
        key: tuple[str, str],
        *,
        snapshots: bool,
        withdraw: Callable[["Ticket"], None],
    ) -> None:
        self.id = id
        self.request = request
        self.key = key
        self.snapshots = snapshots
        self.submitted = time.monotonic()
        self.started: float | None = None
        self._withdraw = withdraw
        self._waiting: Waiting | None = None
        self._fresh: dict[type, Waiting | Snapshot] = {}
        self._outcome: InfillResult | ServiceError | None = None
        self._changed = asyncio.Event()

    @property
    def session(self) -> str:
        """Whose request it is."""
        return self.key[0]

    @property
    def ended(self) -> bool:
        """Whether there is a result or an error."""
        return self._outcome is not None

    async def events(self) -> AsyncIterator[Waiting | Snapshot]:
        """What happens until the end; a slow reader gets the latest event of each kind. For one reader only."""
        while self._fresh or not self.ended:
            fresh, self._fresh = self._fresh, {}
            for event in fresh.values():
                yield event
            if not self._fresh and not self.ended:
                await self._change()

    async def result(self) -> InfillResult:
        """The result; raises ServiceError ``cancelled``, ``superseded``, ``worker_crashed``, ``bad_request``, ..."""
        while self._outcome is None:
            await self._change()
        if isinstance(self._outcome, ServiceError):
            raise self._outcome
        return self._outcome

    def cancel(self) -> None:
        """Stop within one denoising step; does nothing after the end, so that a ``finally`` may call it."""
        self._withdraw(self)

    def tell(self, event: Waiting | Snapshot) -> None:
        """Scheduler: something has happened; the same news twice is told once."""
        if self.ended:
            return
        if isinstance(event, Waiting):
            if event == self._waiting:
                return
            self._waiting = event
        self._fresh[type(event)] = event
        self._changed.set()

    def end(self, outcome: InfillResult | ServiceError) -> None:
        """Scheduler: the first outcome stands."""
        if self._outcome is None:
            self._outcome = outcome
            self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
